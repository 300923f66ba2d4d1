// Runs `rx-trade-feed demo` in a terminal and draws what it shows: docs/diagrams/demo.svg. Reads dist, so build first. Needs `script` of util-linux.
//
//   node scripts/site/capture-demo.mjs
import xterm from '@xterm/headless';
import { spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { screenOf, terminalSvg } from './terminal-svg.mjs';

const [cols, rows] = [100, 25];
const [first, last] = [5, 13];
const program = `stty cols ${cols} rows ${rows}; exec node dist/cli/main.js demo --outage-every 8 --duration ${last + 1}`;

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
  if (code !== 0 && code !== 124) throw new Error(`The demo ended with exit code ${code}.`);
  const title = 'A terminal that shows the demo of rx-trade-feed';
  writeFileSync('docs/diagrams/demo.svg', terminalSvg({ title, screens, secondsEach: 1, cols, rows }));
  console.log(`docs/diagrams/demo.svg: ${screens.length} screens`);
});
