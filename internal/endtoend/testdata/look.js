// What is wrong with how the page looks, as a list of sentences.
(() => {
  const wrong = [];

  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = 1;
  const pen = canvas.getContext("2d", { willReadFrequently: true });
  function paint(layers) {
    pen.clearRect(0, 0, 1, 1);
    for (const layer of layers) {
      pen.fillStyle = layer;
      pen.fillRect(0, 0, 1, 1);
    }
    return [...pen.getImageData(0, 0, 1, 1).data].slice(0, 3);
  }
  function light([r, g, b]) {
    const part = (c) => ((c /= 255) <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
    return 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b);
  }
  function contrast(a, b) {
    const [high, low] = [light(a), light(b)].sort((x, y) => y - x);
    return (high + 0.05) / (low + 0.05);
  }
  function behind(element) {
    const layers = [];
    for (let e = element; e; e = e.parentElement) layers.unshift(getComputedStyle(e).backgroundColor);
    return ["Canvas", ...layers];
  }
  function seen(element) {
    const box = element.getBoundingClientRect();
    const style = getComputedStyle(element);
    return box.width > 1 && box.height > 1 && style.visibility === "visible" && !element.closest(".hidden, .skip, [hidden]");
  }

  const said = new Set();
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const words = texts.currentNode.textContent.trim();
    const element = texts.currentNode.parentElement;
    if (!words || !seen(element) || element.closest("option, script, style, button:disabled")) continue;
    const layers = behind(element);
    const ratio = contrast(paint([...layers, getComputedStyle(element).color]), paint(layers));
    const line = `"${words.slice(0, 30)}" (${element.tagName.toLowerCase()}.${element.className}) has a contrast of ${ratio.toFixed(2)}`;
    if (ratio < 4.5 && !said.has(line)) {
      said.add(line);
      wrong.push(line);
    }
  }

  const root = document.documentElement;
  if (root.scrollWidth > root.clientWidth) {
    let widest = root;
    for (const e of document.body.querySelectorAll("*")) {
      const right = e.getBoundingClientRect().right;
      if (right > root.clientWidth && right > widest.getBoundingClientRect().right - 1) widest = e;
    }
    wrong.push(`it is ${root.scrollWidth} px wide, because of ${widest.tagName.toLowerCase()}.${widest.className}`);
  }

  for (const field of document.querySelectorAll("input:not([type=hidden]), select, textarea")) {
    if (field.labels.length === 0 && !field.getAttribute("aria-label")) wrong.push(`the field ${field.name} has no label`);
  }
  for (const button of document.querySelectorAll("button, a")) {
    if (!button.textContent.trim() && !button.getAttribute("aria-label")) wrong.push(`a ${button.tagName} has no name`);
  }
  for (const svg of document.querySelectorAll("svg[role=img]")) {
    if (!svg.getAttribute("aria-label")) wrong.push("a plot has no name");
  }
  if (document.querySelectorAll("h1").length !== 1) wrong.push("there is not one h1");
  if (document.querySelectorAll("main").length !== 1) wrong.push("there is not one main part");
  if (document.querySelectorAll("[style]").length !== 0) wrong.push("an element has a style of its own");
  const ids = [...document.querySelectorAll("[id]")].map((e) => e.id);
  for (const id of ids) if (ids.indexOf(id) !== ids.lastIndexOf(id)) wrong.push(`two elements are called ${id}`);
  return wrong;
})()
