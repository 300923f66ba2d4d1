// Draws charts as SVG: bars, columns and lines. They are readable on light and dark pages, and the same figures make the same bytes.
import { bars } from './svg-bars.mjs';
import { columns } from './svg-columns.mjs';
import { lines } from './svg-lines.mjs';
import { text } from './svg-text.mjs';

const WIDTH = 800;
const HEADER = 44;
const LEGEND = 22;
const COLORS = 8;
const kinds = { bars, columns, lines };

/**
 * Draws a chart.
 *
 * `bars` are horizontal, one group for each x, which may be a long name. Labels that begin with `highlight` are bold. `lines` have numbers
 * or names as x. `columns` are a histogram, with the predictions as lines. `log` makes the axes of lines logarithmic.
 */
export const svg = ({ title, kind, x = '', y = '', log = false, highlight, series }) => {
  if (!(kind in kinds)) throw new TypeError(`Unknown kind of chart: ${kind}.`);
  const legend = series.length > 1 ? legendOf(series) : { body: '', height: 0 };
  const top = HEADER + legend.height;
  const { body, height } = kinds[kind]({ x, y, log, highlight, series, top, width: WIDTH });
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" role="img" aria-label="${escaped(title)}">`,
    `<style>${style}</style>`,
    `<rect class="page" width="${WIDTH}" height="${height}" rx="6"/>`,
    text(16, 27, title, 'title'),
    legend.body,
    body,
    '</svg>\n',
  ].join('\n');
};

const escaped = (value) => value.replaceAll('&', '&amp;').replaceAll('"', '&quot;').replaceAll('<', '&lt;');

// Names in rows, wrapped by an estimate of their width.
const legendOf = (series) => {
  const items = [];
  let [left, row] = [16, 0];
  for (const [n, { name }] of series.entries()) {
    const width = 26 + name.length * 7;
    if (left + width > WIDTH - 16) [left, row] = [16, row + 1];
    const at = HEADER + row * LEGEND;
    items.push(`<rect class="s${n % COLORS}" x="${left}" y="${at}" width="12" height="12" rx="3"/>`);
    items.push(text(left + 18, at + 10, name));
    left += width;
  }
  return { body: items.join('\n'), height: (row + 1) * LEGEND + 4 };
};

// A chart draws its own background: the page around it may be light while the system of the reader is dark.
const palette = (ink, muted, grid, page, colors) =>
  `.page{fill:${page}}text{fill:${ink}}.muted{fill:${muted}}.grid{stroke:${grid}}` +
  colors.map((color, n) => `.s${n}{fill:${color}}.l${n}{stroke:${color}}`).join('');
const light = ['#2a78d6', '#1baf7a', '#eda100', '#4a3aa7', '#e34948', '#e87ba4', '#008300', '#eb6834'];
const dark = ['#3987e5', '#199e70', '#c98500', '#9085e9', '#e66767', '#d55181', '#4bb04b', '#d95926'];
const style =
  'text{font:12px system-ui,sans-serif}.title{font-size:15px;font-weight:600}.strong{font-weight:700}' +
  '.grid{stroke-width:1}.line{fill:none;stroke-width:2}' +
  palette('#1f2328', '#656d76', '#e3e5e8', '#ffffff', light) +
  `@media(prefers-color-scheme:dark){${palette('#e6edf3', '#8d96a0', '#30363d', '#0d1117', dark)}}`;
