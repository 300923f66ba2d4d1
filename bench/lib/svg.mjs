// Draws charts as SVG with Observable Plot: bars, columns and lines. They are readable on light and dark pages. The same figures result in the
// same bytes.
import * as Plot from '@observablehq/plot';
import { DOMParser } from 'linkedom';
import { columns, lines } from './svg-axes.mjs';
import { bars } from './svg-bars.mjs';

const SVG = 'http://www.w3.org/2000/svg';
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
  const { items, height: legend } = series.length > 1 ? legendOf(series) : { items: [], height: 0 };
  const top = HEADER + legend;
  const options = kinds[kind]({ x, y, log, highlight, series, top });
  // linkedom escapes attributes in XML documents only.
  const document = new DOMParser().parseFromString('<svg/>', 'image/svg+xml');
  const chart = Plot.plot({ ...options, document, width: WIDTH, className: 'plot', ariaLabel: title });
  const element = ([name, attributes, text = '']) => {
    const created = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) created.setAttribute(key, String(value));
    created.textContent = text;
    return created;
  };
  chart.setAttribute('xmlns', SVG);
  chart.setAttribute('role', 'img');
  const page = [
    ['style', {}, style],
    ['rect', { class: 'page', width: WIDTH, height: options.height, rx: 6 }],
    ['text', { class: 'title', x: 16, y: 27, 'text-anchor': 'start' }, title],
    ...items,
  ];
  chart.prepend(...page.map(element));
  return `${chart.outerHTML}\n`;
};

// Names in rows, wrapped by an estimate of their width.
const legendOf = (series) => {
  const items = [];
  let [left, row] = [16, 0];
  for (const [n, { name }] of series.entries()) {
    const width = 26 + name.length * 7;
    if (left + width > WIDTH - 16) [left, row] = [16, row + 1];
    const at = HEADER + row * LEGEND;
    items.push(['rect', { class: `s${n % COLORS}`, x: left, y: at, width: 12, height: 12, rx: 3 }]);
    items.push(['text', { x: left + 18, y: at + 10, 'text-anchor': 'start' }, name]);
    left += width;
  }
  return { items, height: (row + 1) * LEGEND + 4 };
};

// A chart draws its own background: the page around it may be light while the system of the reader is dark.
const palette = (ink, muted, page, colors) =>
  `svg{color:${ink}}.page{fill:${page}}.muted,[aria-label*="-axis"]{fill:${muted}}` +
  colors.map((color, n) => `.s${n}{fill:${color}}.l${n}{stroke:${color}}`).join('');
const light = ['#2a78d6', '#1baf7a', '#eda100', '#4a3aa7', '#e34948', '#e87ba4', '#008300', '#eb6834'];
const dark = ['#3987e5', '#199e70', '#c98500', '#9085e9', '#e66767', '#d55181', '#4bb04b', '#d95926'];
const style =
  'svg{font:12px system-ui,sans-serif}.title{font-size:15px;font-weight:600}.strong{font-weight:700}' +
  '.line{fill:none;stroke-width:2}' +
  palette('#1f2328', '#656d76', '#ffffff', light) +
  `@media(prefers-color-scheme:dark){${palette('#e6edf3', '#8d96a0', '#0d1117', dark)}}`;
