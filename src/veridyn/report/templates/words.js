// A number keeps its unit: no line breaks between them. Long names break where a reader would. What is folded away opens for the printer.
(() => {
  const UNIT = /([\d⁰¹²³⁴-⁹]) (?=(?:%|°|σ|(?:[kmµnGM]?(?:m|s|g|N|A|V|W|J|Hz|Pa)|kg|rad|deg|min|mm|ms)(?:[·/²³]|(?![\p{L}\d_]))))/gu;
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT, (node) => (node.parentElement.closest("script, style, pre, .names, .relations") ? NodeFilter.FILTER_REJECT : NodeFilter.FILTER_ACCEPT));
  while (walk.nextNode()) {
    const text = walk.currentNode.nodeValue, joined = text.replace(UNIT, "$1\u00a0");
    if (joined !== text) walk.currentNode.nodeValue = joined;
  }
  for (const head of document.querySelectorAll("tbody th:first-child")) {  // long names may break behind a dot or an underscore
    for (const node of [...head.childNodes].filter((n) => n.nodeType === Node.TEXT_NODE && /[._]\w/.test(n.nodeValue))) {
      const parts = node.nodeValue.split(/(?<=[._])(?=\w)/);
      node.replaceWith(...parts.flatMap((part, k) => (k ? [document.createElement("wbr"), part] : [part])));
    }
  }
  addEventListener("beforeprint", () => { for (const e of document.querySelectorAll("details")) e.open = true; });
})();
