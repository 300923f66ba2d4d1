// Runs `rx-trade-feed demo` in a terminal and draws what it shows: docs/diagrams/demo.svg. Reads dist, so build first. Needs `script` of util-linux.
//
//   node scripts/site/capture-demo.mjs
import xterm from '@xterm/headless';
import { spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';

const column = 8.4;
const row = 18;
const padding = 16;
const ink = '#d7dde5';
const page = '#10151c';
// The 16 colours of a terminal, with enough contrast on the page.
const palette = [
  ...['#6b7685', '#ff8b85', '#5fd38d', '#e8c45b', '#7fb6ff', '#d9a1f5', '#5ad7d7', '#d7dde5'],
  ...['#98a3b3', '#ffaba6', '#86e3aa', '#f2d67f', '#a3ccff', '#e6c0fa', '#86e6e6', '#ffffff'],
];

const escaped = (text) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;');

/** Returns the runs of cells with the same style in a line of the terminal: `{ text, at, style }`. */
const runsOf = (line, columns) => {
  const runs = [];
  let cell;
  for (let at = 0; at < columns; at += 1) {
    cell = line.getCell(at, cell);
    const text = cell.getChars() || ' ';
    const color = cell.isDim() ? palette[8] : cell.isFgPalette() ? (palette[cell.getFgColor()] ?? ink) : ink;
    const style = `${color}${cell.isBold() ? ' bold' : ''}`;
    const last = runs.at(-1);
    if (last?.style === style) last.text += text;
    else runs.push({ text, at, style });
  }
  return runs.map((run) => ({ ...run, text: run.text.trimEnd() })).filter(({ text }) => text !== '');
};

/** Returns the text of a screen as SVG. */
const screenOf = ({ buffer: { active }, cols, rows }) =>
  Array.from({ length: rows }, (_, y) =>
    runsOf(active.getLine(active.viewportY + y), cols).map(({ text, at, style }) => {
      const [color, weight] = style.split(' ');
      const indent = text.length - text.trimStart().length;
      const shown = text.trimStart();
      const x = padding + (at + indent) * column;
      const attributes = [
        `x="${x.toFixed(1)}" y="${padding + (y + 0.75) * row}" fill="${color}"`,
        `textLength="${([...shown].length * column).toFixed(1)}"`,
        ...(weight ? ['font-weight="700"'] : []),
      ];
      return `<text ${attributes.join(' ')}>${escaped(shown)}</text>`;
    }),
  )
    .flat()
    .join('\n');

/** Draws screens, each for `secondsEach`. A reader who prefers no motion sees the last one. */
const terminalSvg = ({ title, screens, secondsEach, cols, rows }) => {
  const [width, height] = [padding * 2 + cols * column, padding * 2 + rows * row];
  const share = 100 / screens.length;
  const duration = screens.length * secondsEach;
  const frames = screens.map(
    (screen, n) => `<g class="screen" style="animation-delay:${n * secondsEach}s">\n${screen}\n</g>`,
  );
  const style =
    'text{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;white-space:pre}' +
    `.screen{visibility:hidden;animation:show ${duration}s steps(1) infinite}` +
    `@keyframes show{0%{visibility:visible}${share.toFixed(3)}%{visibility:hidden}}` +
    '@media(prefers-reduced-motion:reduce){.screen{animation:none}.screen:last-child{visibility:visible}}';
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" role="img" aria-label="${escaped(title)}">`,
    `<style>${style}</style>`,
    `<rect width="${width}" height="${height}" rx="8" fill="${page}"/>`,
    ...frames,
    '</svg>\n',
  ].join('\n');
};

const [cols, rows] = [100, 25];
// The outage begins after 8 s. How soon the feed is back is random: run it again if it isn't on the last screen.
const [first, last] = [6, 14];
const program = `stty cols ${cols} rows ${rows}; exec node dist/cli/main.js demo --duration ${last + 1}`;

const terminal = new xterm.Terminal({ cols, rows, allowProposedApi: true });
const env = { ...process.env, TERM: 'xterm-256color', SHELL: '/bin/sh' };
delete env.NO_COLOR;
const child = spawn('script', ['-qfec', program, '/dev/null'], { env, stdio: ['ignore', 'pipe', 'inherit'] });
child.stdout.on('data', (bytes) => terminal.write(bytes));

const screens = [];
let seconds = 0;
const timer = setInterval(() => {
  seconds += 1;
  if (seconds >= first && seconds <= last) terminal.write('', () => screens.push(screenOf(terminal)));
}, 1_000);

child.once('close', (code) => {
  clearInterval(timer);
  if (code !== 0) throw new Error(`The demo ended with exit code ${code}.`);
  const title = 'A terminal that shows the demo of rx-trade-feed';
  writeFileSync('docs/diagrams/demo.svg', terminalSvg({ title, screens, secondsEach: 1, cols, rows }));
  console.log(`docs/diagrams/demo.svg: ${screens.length} screens`);
});
