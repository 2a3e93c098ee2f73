// The search of the site runs in a worker, which a browser does not start from the disk (file://). There the same script runs in a hidden frame.
(() => {
  if (location.protocol !== "file:") return;
  class FrameWorker extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.append(frame);
      this.inside = frame.contentWindow;
      this.addEventListener("message", (event) => this.onmessage && this.onmessage(event));
      this.inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      const load = (source) =>
        new Promise((resolve, reject) => {
          const script = this.inside.document.createElement("script");
          script.src = source;
          script.onload = resolve;
          script.onerror = () => reject(new Error(`${source} cannot be read`));
          this.inside.document.body.append(script);
        });
      this.inside.importScripts = (...sources) =>
        sources.reduce((before, source) => before.then(() => load(source)), Promise.resolve());
      this.ready = load(url);
    }
    postMessage(data) {
      this.ready.then(() => this.inside.dispatchEvent(new MessageEvent("message", { data })));
    }
    terminate() {
      this.inside.frameElement.remove();
    }
  }
  window.IFrameWorker = window.Worker = FrameWorker; // the worker of the theme looks for this name to find its own files
})();
