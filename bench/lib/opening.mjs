// What docs/performance.md shows of some benchmarks: the first chart, and a comparison with apps that are written by hand.
import { image } from './fill.mjs';
import { mediansOf, rangeOf } from './figures.mjs';

const working = ({ goals }) => {
  const of = (task) => mediansOf(goals, `app/${task}/`);
  const sentences = {
    wallets: (range) =>
      `An app that wants one frame in a thousand, those of 500 wallets, takes ${range} times as much CPU time when it's written by hand with \`ws\`, because it parses every frame.`,
    everything: (range) => `One that decodes, shares and windows every frame takes ${range} times as much.`,
  };
  return Object.entries(sentences).flatMap(([task, text]) => (of(task).length > 0 ? [text(rangeOf(of(task)))] : []));
};

const filtering = ({ goals }) => [
  `On its own, \`whereField\` drops a frame in ${rangeOf(mediansOf(goals, 'filter/one value/').map((ratio) => ratio * 100))} % of the time that \`JSON.parse\` needs for it.`,
];

const serving = ({ goals }) => [
  `A server that pushes a feed to 10, 100 or 1,000 pages takes ${rangeOf(mediansOf(goals, 'fanout/'))} times as much CPU time with Server-Sent Events written by hand as with the relay.`,
];

/** Returns the first chart of docs/performance.md, from the result of `e2e`, which may be `undefined`. */
export const openingText = (e2e, folder) => {
  if (e2e === undefined) return 'Not measured yet: `npm run bench -- e2e`.';
  return e2e.charts
    .filter(({ opens }) => opens)
    .map((chart) => image(chart, folder))
    .join('\n\n');
};

/** Returns how an app with this library compares with one by hand, from the results by name. It skips benchmarks that haven't been run. */
export const appsText = ({ app, filter, fanout }) => {
  const sentences = [
    ...(app ? working(app) : []),
    ...(filter ? filtering(filter) : []),
    ...(fanout ? serving(fanout) : []),
  ];
  return sentences.join(' ') || 'Not measured yet: `npm run bench -- all app filter fanout`.';
};
