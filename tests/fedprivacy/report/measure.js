// What a page shows in this window, measured on computed styles: used by `shown.py`.
() => {
const box = element => element.getBoundingClientRect();
const seen = element => box(element).width > 0 && element.checkVisibility({visibilityProperty: true});
const rgba = color => { const [red, green, blue, alpha = 1] = color.match(/[\d.]+/g).map(Number); return [red, green, blue, alpha]; };
const over = (top, under) => under.map((value, at) => at < 3 ? top[3] * top[at] + (1 - top[3]) * value : 1);

// WCAG 2: relative luminance, and the contrast of two colours.
const luminance = color => { const [red, green, blue] = color.slice(0, 3).map(part => part / 255)
  .map(part => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4); return 0.2126 * red + 0.7152 * green + 0.0722 * blue; };
const contrast = (one, other) => { const [low, high] = [luminance(one), luminance(other)].sort((a, b) => a - b); return (high + 0.05) / (low + 0.05); };
const needed = style => { const size = parseFloat(style.fontSize); return size >= 24 || (size >= 18.66 && style.fontWeight >= 700) ? 3 : 4.5; };

const ancestors = element => element ? [...ancestors(element.parentElement), element] : [];
const opacity = element => ancestors(element).reduce((product, each) => product * getComputedStyle(each).opacity, 1);
const paper = element => ancestors(element).reduce((under, each) => over(rgba(getComputedStyle(each).backgroundColor), under), [255, 255, 255, 1]);

// The colour behind a text of a drawing: its halo, or the paper with each filled shape that was drawn there before.
const filled = new Map();
const shapes = drawing => { if (!filled.has(drawing)) filled.set(drawing, [...drawing.querySelectorAll("rect, path, circle, polygon")]
  .filter(shape => !shape.closest("defs, clipPath") && getComputedStyle(shape).fill !== "none")); return filled.get(drawing); };
const covers = (shape, x, y) => { const {left, right, top, bottom} = box(shape);
  return left <= x && x <= right && top <= y && y <= bottom && shape.isPointInFill(new DOMPoint(x, y).matrixTransform(shape.getScreenCTM().inverse())); };
const behind = text => { const style = getComputedStyle(text), drawing = text.closest("svg"), {left, right, top, bottom} = box(text);
  if (style.paintOrder.startsWith("stroke") && parseFloat(style.strokeWidth) >= 3) return rgba(style.stroke);
  return shapes(drawing).filter(shape => shape.compareDocumentPosition(text) & Node.DOCUMENT_POSITION_FOLLOWING)
    .filter(shape => covers(shape, (left + right) / 2, (top + bottom) / 2)).reduce((under, shape) => { const {fill, fillOpacity} = getComputedStyle(shape);
      const [red, green, blue, alpha] = rgba(fill); return over([red, green, blue, alpha * fillOpacity * opacity(shape)], under); }, paper(drawing)); };
const faint = [...document.querySelectorAll("body *")].filter(element => [...element.childNodes].some(node => node.nodeType === 3 && node.data.trim()))
  .filter(seen).map(element => { const style = getComputedStyle(element), drawn = element.closest("svg"), under = drawn ? behind(element) : paper(element);
    const [red, green, blue, alpha] = rgba(drawn ? style.fill : style.color); const ink = over([red, green, blue, alpha * opacity(element)], under);
    return [element.textContent.trim(), contrast(ink, under), needed(style)]; }).filter(([, reached, least]) => reached < least);

const drawings = [...document.querySelectorAll("svg")].filter(seen);
const labels = drawings.map(drawing => [...drawing.querySelectorAll("text")].filter(seen));
const beyond = (inner, outer) => inner.right > outer.right + 1 || inner.left < outer.left - 1 || inner.top < outer.top - 1 || inner.bottom > outer.bottom + 1;
// Above its letters a text has a fifth of its size free, so boxes may share less than that.
const meet = (text, other) => { const [one, two] = [box(text), box(other)]; return Math.min(one.right, two.right) - Math.max(one.left, two.left) > 1
  && Math.min(one.bottom, two.bottom) - Math.max(one.top, two.top) > 0.15 * Math.min(...[text, other].map(each => parseFloat(getComputedStyle(each).fontSize))); };
return {
  cut: drawings.flatMap((drawing, at) => labels[at].filter(text => beyond(box(text), box(drawing))).map(text => text.textContent)),
  overlapping: labels.flatMap(texts => texts.flatMap((text, at) => texts.slice(at + 1).filter(other => meet(text, other))
    .map(other => [text.textContent, other.textContent]))),
  faint,
  sizes: drawings.map(drawing => [box(drawing).width, box(drawing).height]),
  figures: document.querySelectorAll("figure").length,
  dark: luminance(paper(document.querySelector("main"))) < 0.2,
  wide: document.documentElement.scrollWidth,
  high: document.documentElement.scrollHeight,
  folded: [...document.querySelectorAll("details > :not(summary)")].filter(part => part.parentElement.checkVisibility() && getComputedStyle(part).display !== "none" && !part.checkVisibility())
    .map(part => part.parentElement.querySelector("summary").textContent),
};
}
