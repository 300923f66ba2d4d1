// The opening of performance.md: what a user gains, in sentences, a chart and a table.
import { image } from './fill.mjs';
import { table } from './table.mjs';

const rangeOf = (ratios) => {
  const [least, most] = [Math.min(...ratios), Math.max(...ratios)].map((ratio) => String(Number(ratio.toFixed(1))));
  return least === most ? least : `${least} to ${most}`;
};

const mediansOf = (rows, start) => rows.filter(({ id }) => id.startsWith(start)).map(({ median }) => median);

const receiving = ({ goals }) => {
  const range = (way, heap) => rangeOf(mediansOf(goals, `e2e/ws/${way}/${heap}/`));
  return [
    `For a frame that is read as text, \`ws\` takes ${range('plain', 0)} times as much CPU time as this library on a plain connection, and ${range('tls', 0)} times as much over TLS.`,
    `With 200 MB of live objects in the process, it takes ${range('plain', 200)} times and ${range('tls', 200)} times as much: \`ws\` receives each read in a new Buffer, and this library reads into one buffer.`,
  ];
};

const working = ({ ratios }) => [
  `In an app that decodes, shares and windows the frames, and has 300 MB of live objects, code written by hand with \`ws\` takes ${rangeOf(Object.values(ratios).map(({ median }) => median))} times as much.`,
];

/** Returns the opening from the results of `e2e` and `app`, which may be `undefined`. */
export const openingText = ({ e2e, app }) => {
  if (e2e === undefined) return 'Not measured yet: `npm run bench -- e2e`.';
  const sentences = [...receiving(e2e), ...(app ? working(app) : [])];
  const tables = e2e.tables.filter(({ opens }) => opens);
  return [
    sentences.join(' '),
    ...e2e.charts.filter(({ opens }) => opens).map((chart) => image(chart, 'performance')),
    ...tables.map((each) => `${each.title}:\n\n${table(each.columns, each.rows)}`),
  ].join('\n\n');
};
