// The texts of a chart.
const marks = { '&': '&amp;', '<': '&lt;', '>': '&gt;' };
const escaped = (value) => String(value).replace(/[&<>]/g, (mark) => marks[mark]);

/** Draws a text. `anchor` is the end of the text that is at x. */
export const text = (x, y, value, style = '', anchor = 'start') =>
  `<text x="${round(x)}" y="${round(y)}" text-anchor="${anchor}"${style && ` class="${style}"`}>${escaped(value)}</text>`;

/** Adds a tooltip to a mark. */
export const hint = (value) => `<title>${escaped(value)}</title>`;

/** Rounds a coordinate to one decimal. */
export const round = (value) => Math.round(value * 10) / 10;
