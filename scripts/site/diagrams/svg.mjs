// Draws the rows of a run as a marble diagram: light and dark, with a text for readers who don't see it.

const left = 24;
/** Labels at the beginning need room. */
const axisLeft = 48;
const width = 680;
const rowHeight = 84;
const header = 44;
const colors = 6;

const escaped = (text) => String(text).replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;');

/** Returns messages with the same time as one list each. */
const together = (messages) => {
  const times = [...new Set(messages.map(({ at }) => at))];
  return times.map((at) => messages.filter((message) => message.at === at));
};

/** Returns a text of the run: each row with its messages after their times. */
const textOf = ({ title, end, rows }) => {
  const texts = rows.map(({ name, messages }) => {
    const shown = together(messages.filter(({ at, label }) => at <= end && label !== ''));
    const times = shown.map((group) => `${group[0].at / 1000} s ${group.map(({ label }) => label).join(', ')}`);
    return `${name}: ${times.join('; ') || 'nothing'}`;
  });
  return [title, ...texts].join('. ');
};

/** Returns the text of a diagram for an image in Markdown. */
export const altTextOf = (run) => textOf(run).replaceAll(/[[\]`*_]/g, '');

const colorOf = (label) => {
  const letter = /^[a-z]$/.test(label) ? label.charCodeAt(0) - 97 : undefined;
  return letter === undefined ? '' : ` s${letter % colors}`;
};

const mark = ({ label, kind }, x, y, shift) => {
  if (kind === 'end') return `<path class="axis" d="M${x} ${y - 12}v24"/>`;
  if (kind === 'frame' && label.length <= 2) {
    const text = `<text class="letter" x="${x}" y="${y + 4.5}">${escaped(label)}</text>`;
    return `<circle class="marble${colorOf(label)}" cx="${x}" cy="${y}" r="12"/>${text}`;
  }
  // Labels of the same time are written below each other.
  const at = y + (shift % 2 === 0 ? -16 - 13 * (shift / 2) : 27 + 13 * ((shift - 1) / 2));
  const shape =
    kind === 'gap'
      ? `<path class="gap" d="M${x} ${y - 9}v18"/>`
      : `<rect class="${kind}" x="${x - 4}" y="${y - 9}" width="8" height="18" rx="2"/>`;
  return label === '' ? shape : `${shape}<text class="label" x="${x}" y="${at}">${escaped(label)}</text>`;
};

const span = ({ from, to, level, isComplete }, x, y) =>
  `<path class="span${isComplete ? '' : ' open'}" d="M${x(Math.max(0, from))} ${y + 20 + 6 * level}v5h${(x(to) - x(Math.max(0, from))).toFixed(1)}v-5"/>`;

/** Draws a run. */
export const diagramSvg = ({ title, end, rows }) => {
  const height = header + rows.length * rowHeight + 26;
  const x = (ms) => Number((axisLeft + (ms / end) * (width - 2 * axisLeft)).toFixed(1));
  const drawn = rows.map(({ name, messages, from = 0, to = end }, n) => {
    const y = header + n * rowHeight + 48;
    const shown = messages.filter(({ at }) => at <= end);
    const outages = shown
      .filter(({ value }) => value?.type === 'gap')
      .map(
        ({ value }) =>
          `<rect class="outage" x="${x(value.from)}" y="${y - 14}" width="${(x(value.to) - x(value.from)).toFixed(1)}" height="28"/>`,
      );
    const axis =
      `<path class="axis" d="M${x(from)} ${y}H${to === end ? x(end) + 12 : x(to)}"/>` +
      (to === end
        ? `<path class="arrow" d="M${x(end) + 12} ${y - 4}l8 4l-8 4z"/>`
        : `<path class="axis" d="M${x(to)} ${y - 8}v16"/>`);
    const spans = shown.flatMap((message) => (message.span ? [span(message.span, x, y)] : []));
    const marks = together(shown).flatMap((group) =>
      group.map((message, shift) => mark(message, x(message.at), y, shift)),
    );
    return [
      `<text class="name" x="${left}" y="${y - 34}">${escaped(name)}</text>`,
      ...(n === 0 ? outages : []),
      axis,
      ...spans,
      ...marks,
    ].join('');
  });
  const ticks = Array.from(
    { length: Math.floor(end / 500) + 1 },
    (_, n) => `<text class="tick" x="${x(n * 500)}" y="${height - 10}">${n / 2} s</text>`,
  );
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" role="img" aria-label="${escaped(textOf({ title, end, rows }))}">`,
    `<style>${style}</style>`,
    `<rect class="page" width="${width}" height="${height}" rx="6"/>`,
    `<text class="title" x="${left}" y="27">${escaped(title)}</text>`,
    ...drawn,
    ticks.join(''),
    '</svg>\n',
  ].join('\n');
};

const palette = (ink, muted, page, line, outage, marbles) =>
  `.page{fill:${page}}text{fill:${ink}}.tick,.label{fill:${muted}}.axis,.span{stroke:${line}}.arrow{fill:${line}}.outage{fill:${outage}}` +
  `.event{fill:${muted}}.value,.window{fill:${ink}}.letter{fill:${page}}.marble{fill:${muted}}` +
  marbles.map((color, n) => `.s${n}{fill:${color}}`).join('');
const light = ['#1f63b5', '#0f7a55', '#8a5a00', '#5b3fb5', '#b3312f', '#9c3a66'];
const dark = ['#7fb6ff', '#5fd38d', '#e8c45b', '#b9a5ff', '#ff9b95', '#f2a3c4'];
const style =
  'text{font:13px system-ui,sans-serif}.title{font-size:15px;font-weight:600}.name{font-family:ui-monospace,Menlo,Consolas,monospace;font-size:12.5px}' +
  '.tick,.label{font-size:11.5px;text-anchor:middle}.letter{text-anchor:middle;font-weight:600}' +
  '.axis,.span,.gap{fill:none;stroke-width:2}.span.open{stroke-dasharray:4 3}.gap{stroke:#c9302c;stroke-width:3}' +
  palette('#1f2328', '#59616b', '#ffffff', '#8b939d', '#fbe3e1', light) +
  `@media(prefers-color-scheme:dark){${palette('#e6edf3', '#a3abb5', '#161618', '#6b7480', '#47201f', dark)}.gap{stroke:#ff8b85}}`;
