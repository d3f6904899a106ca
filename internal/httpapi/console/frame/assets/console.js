// What the console does beside showing pages: it renews the live part, unless somebody is reading or pausing it, and takes
// a few keys. Everything works without it, on reload.
"use strict";

(() => {
  let paused = false;

  // A part is left alone while its page isn't looked at, while it is paused, and while something in it has the focus, is
  // pointed at or is being selected: what one is about to press or copy must not move.
  function busy(part) {
    const selection = document.getSelection();
    return document.hidden || paused || part.contains(document.activeElement) || part.querySelector("a:hover, button:hover") !== null ||
      (selection && !selection.isCollapsed && part.contains(selection.anchorNode));
  }

  document.addEventListener("htmx:beforeRequest", (event) => {
    if (event.detail.elt.id === "live" && busy(event.detail.elt)) event.preventDefault();
  });

  document.addEventListener("htmx:configRequest", (event) => {
    if (event.detail.elt.id === "live") event.detail.parameters.seen = event.detail.elt.dataset.seen;
  });

  document.addEventListener("htmx:afterSwap", () => {
    const part = document.getElementById("live");
    const said = document.getElementById("said");
    if (part && said && said.textContent !== part.dataset.said) said.textContent = part.dataset.said;
    showPause();
  });

  // The button is there only while there is something to pause.
  function showPause() {
    const part = document.getElementById("live");
    for (const button of document.querySelectorAll("[data-pause]")) {
      button.hidden = !(part && part.hasAttribute("hx-get"));
      button.setAttribute("aria-pressed", String(paused));
      button.querySelector("[data-word]").textContent = paused ? "Paused" : "Live";
    }
  }

  document.addEventListener("click", (event) => {
    if (event.target.closest("[data-pause]")) {
      paused = !paused;
      showPause();
    }
  });

  function writing(target) {
    return target.closest("input, textarea, select, [contenteditable]") !== null;
  }

  let going = 0; // when g was pressed

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    if (event.key === "Escape" && event.target.closest("[data-search]")) {
      event.target.blur();
      return;
    }
    if (writing(event.target)) return;
    if (event.key === "/") {
      const search = document.querySelector("[data-search]");
      if (search) {
        event.preventDefault();
        search.focus();
        search.select();
      }
      return;
    }
    if (event.key === "g") {
      going = Date.now();
      return;
    }
    if (Date.now() - going < 1500 && /^[a-z]$/.test(event.key)) {
      const link = document.querySelector(`a[data-key="${event.key}"]`);
      if (link) {
        event.preventDefault();
        link.click();
      }
    }
    going = 0;
  });

  showPause();
})();
