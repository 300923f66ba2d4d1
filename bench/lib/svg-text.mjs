// The words of a chart.
const marks = { '&': '&amp;', '<': '&lt;', '>': '&gt;' };
const escaped = (value) => String(value).replace(/[&<>]/g, (mark) => marks[mark]);

/** A text; `anchor` says which end of it is at x. */
export const text = (x, y, value, style = '', anchor = 'start') =>
  `<text x="${round(x)}" y="${round(y)}" text-anchor="${anchor}"${style && ` class="${style}"`}>${escaped(value)}</text>`;

/** What a pointer is told when it rests on a mark. */
export const hint = (value) => `<title>${escaped(value)}</title>`;

/** A coordinate, short. */
export const round = (value) => Math.round(value * 10) / 10;
