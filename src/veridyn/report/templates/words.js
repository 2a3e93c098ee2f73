// A number keeps its unit: no line breaks between them. What is folded away opens for the printer.
(() => {
  const UNIT = /([\d⁰¹²³⁴-⁹]) (?=(?:%|°|σ|(?:[kmµnGM]?(?:m|s|g|N|A|V|W|J|Hz|Pa)|kg|rad|deg|min|mm|ms)(?:[·/²³]|(?![\p{L}\d_]))))/gu;
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT, (node) => (node.parentElement.closest("script, style, pre, .names, .relations") ? NodeFilter.FILTER_REJECT : NodeFilter.FILTER_ACCEPT));
  while (walk.nextNode()) {
    const text = walk.currentNode.nodeValue, joined = text.replace(UNIT, "$1\u00a0");
    if (joined !== text) walk.currentNode.nodeValue = joined;
  }
  addEventListener("beforeprint", () => { for (const e of document.querySelectorAll("details")) e.open = true; });
})();
