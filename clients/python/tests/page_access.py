"""What a page is for people who do not see it, see little, or read another language: names, contrast, focus, texts."""

import json
import re
import time

from plain_client import PATIENCE

#: Text that everybody can see: elements with text of their own, and what the controls show.
_SEEN = """
const seen = (node) => node.checkVisibility({ visibilityProperty: true }) && node.getClientRects().length > 0;
const texts = () => {
  const found = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode.parentElement;
    if (walker.currentNode.data.trim() !== '' && seen(node)) found.push([node, walker.currentNode.data.trim()]);
  }
  return found;
};
"""
#: Texts whose contrast with what is behind them is too low: `[[text, contrast, colours], ...]`. What cannot be used may
#: be pale.
_CONTRAST = "(() => {" + _SEEN + """
const pen = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
const parsed = new Map();
const colour = (text) => {
  if (!parsed.has(text)) {
    pen.clearRect(0, 0, 1, 1);
    pen.fillStyle = text;
    pen.fillRect(0, 0, 1, 1);
    const [red, green, blue, alpha] = pen.getImageData(0, 0, 1, 1).data;
    parsed.set(text, [red, green, blue, alpha / 255]);
  }
  return parsed.get(text);
};
const over = ([red, green, blue, alpha], below) =>
  [red, green, blue].map((part, place) => part * alpha + below[place] * (1 - alpha));
const behind = (node) => {
  if (node === null) return matchMedia('(prefers-color-scheme: dark)').matches ? [18, 18, 18] : [255, 255, 255];
  const own = colour(getComputedStyle(node).backgroundColor);
  return own[3] === 1 ? own.slice(0, 3) : over(own, behind(node.parentElement));
};
const light = (parts) => {
  const [red, green, blue] = parts.map((part) => part / 255)
    .map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
};
const ratio = (one, other) => {
  const [high, low] = [light(one), light(other)].sort((a, b) => b - a);
  return (high + 0.05) / (low + 0.05);
};
const pale = (node) => {
  let alpha = 1;
  for (let at = node; at !== null; at = at.parentElement) alpha *= Number(getComputedStyle(at).opacity);
  return alpha;
};
const contrast = (node, text) => {
  const [red, green, blue, alpha] = colour(text);
  const below = behind(node);
  return ratio(over([red, green, blue, alpha * pale(node)], below), below);
};
"""
_LOW = _CONTRAST + """
const low = [];
const look = (node, text, painted) => {
  const found = contrast(node, painted);
  if (found < 4.5) low.push([text.slice(0, 40), found.toFixed(2), node.closest('section')?.dataset.paneKind]);
};
let count = 0;
for (const [node, text] of texts()) {
  if (node.closest(':disabled, option, noscript') !== null) continue;
  count += 1;
  look(node, text, getComputedStyle(node).color);
}
for (const node of document.querySelectorAll('input:enabled, select:enabled')) {
  if (!seen(node) || ['checkbox', 'radio'].includes(node.type)) continue;
  count += 1;
  look(node, node.name, getComputedStyle(node).color);
  if (node.placeholder) look(node, node.placeholder, getComputedStyle(node, '::placeholder').color);
}
return { count, low };
})()"""
#: What Tab leads to, and each control that it should lead to.
_TABBABLE = "(() => {" + _SEEN + """
const kinds = 'button:enabled, input:enabled, select:enabled, summary, a[href], [tabindex="0"]';
const all = document.querySelectorAll(kinds);
const stops = [...all].filter((node) => seen(node) && (node.type !== 'radio' || node.checked));
stops.forEach((node, place) => (node.tabStop = place));
return stops.map((node) => node.outerHTML.slice(0, 120));
})()"""
#: Whether the focus can be seen where it is: `[place, outline's width, its contrast with what is around it]`.
_FOCUS = _CONTRAST + """
const node = document.activeElement;
if (node === document.body || node === null) return null;
const { outlineStyle, outlineWidth, outlineColor } = getComputedStyle(node);
const width = outlineStyle === 'none' ? 0 : parseFloat(outlineWidth);
return [node.tabStop ?? null, width, contrast(node.parentElement, outlineColor), node.outerHTML.slice(0, 120)];
})()"""
#: Texts of the page itself, not of data: what is shown, and what is read out.
_OWN_TEXTS = "(() => {" + _SEEN + """
const own = (node) => node.closest('[translate=no], [data-value], noscript, script, style') === null;
const found = texts().filter(([node]) => own(node) || node.dataset.text !== undefined).map(([, text]) => text);
for (const name of ['label', 'title', 'placeholder']) {
  for (const node of document.querySelectorAll(`[data-${name}]`)) {
    found.push(node.getAttribute(name === 'label' ? 'aria-label' : name));
  }
}
for (const node of document.querySelectorAll('option[data-text]')) found.push(node.textContent);
return [...new Set([document.title, ...found])];
})()"""


def use_scheme(page, scheme):
    """Shows a page in `light` or `dark`."""
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    page.call("Emulation.setEmulatedMedia", features=features)


def check_contrast(page, texts=30):
    """Every text has a contrast of at least 4.5 with what is behind it, in light and in dark."""
    for scheme in ("light", "dark"):
        use_scheme(page, scheme)
        found = page.js(_LOW)
        assert found["count"] >= texts, "texts were looked at"
        assert found["low"] == [], (scheme, found["low"])
    use_scheme(page, "light")


def check_names(page):
    """Whatever can have the focus has a name for who does not see it; each region has one of its own."""
    nodes = page.call("Accessibility.getFullAXTree")["nodes"]
    regions, nameless = [], []
    for node in nodes:
        role, name = node.get("role", {}).get("value"), node.get("name", {}).get("value", "").strip()
        can = {one["name"]: one["value"].get("value") for one in node.get("properties", [])}
        if node["ignored"] or role == "RootWebArea":
            continue
        if role == "region":
            regions.append(name)
        # A paragraph takes the focus only so that nothing that acts has it.
        if can.get("focusable") and not name and role != "paragraph":
            nameless.append((role, node["backendDOMNodeId"]))
    shown = [(role, html_of(page, number)) for role, number in nameless]
    assert shown == [] and all(regions), (shown, regions)
    assert len(regions) == len(set(regions)), regions
    # Behind a dialog nothing is there.
    assert len(regions) > 3 or page.js("document.querySelector('dialog[open]') !== null")


def html_of(page, number):
    """The beginning of an element, by the browser's number of it."""
    return page.call("DOM.getOuterHTML", backendNodeId=number)["outerHTML"][:160]


def check_focus(page, key="Tab"):
    """Tab leads to every control that can be used, and where it is can be seen."""
    for scheme in ("light", "dark"):
        use_scheme(page, scheme)
        page.js("document.activeElement?.blur()")
        stops, reached = page.js(_TABBABLE), set()
        for _ in range(3 * len(stops)):
            page.key(key)
            at = page.js(_FOCUS)
            if at is None:
                continue
            place, width, contrast, html = at
            assert width >= 2 and contrast >= 3, (scheme, html, width, contrast)
            reached.add(place)
        missing = [html for place, html in enumerate(stops) if place not in reached]
        assert missing == [] and len(stops) > 10, (scheme, missing)
    use_scheme(page, "light")


#: Words of a Japanese page that are as they are: names, keys of the keyboard, what is typed.
NAMES = re.compile(
    r"kumiki console|Kumiki|English|JST|ID|TSE|Home|End|Escape|max|web_broker|local_broker|--console-port|kumiki key")
JAPANESE = re.compile("[\u3041-\u30fa\u4e00-\u9fff]")


def check_language(page, language):
    """All of the page's own texts are in its language, once it is drawn."""
    assert page.js("document.documentElement.lang") == language and len(page.js(_OWN_TEXTS)) > 20
    deadline = time.monotonic() + PATIENCE
    while wrong := [text for text in page.js(_OWN_TEXTS) if is_foreign(text, language)]:
        assert time.monotonic() < deadline, wrong
        time.sleep(0.05)


def is_foreign(text, language):
    """Whether a text is not of a language."""
    if language == "ja":
        return bool(re.search("[A-Za-z]{2}", NAMES.sub("", text)))
    return bool(JAPANESE.search(text)) and text != "日本語"


def table_of(page):
    """The page's table of texts: by key, in both languages."""
    return json.loads(page.js("fetch('/assets/texts.json').then((answer) => answer.text())"))
