// The figures in the sentences of docs/reliability.md and of the landing page, from the results of the long checks.
import { cellOf, grouped } from '../../bench/lib/figures.mjs';

const measured = ({ goals, name }, what) => {
  const found = goals.find((goal) => goal.what === what);
  if (found === undefined) throw new Error(`The result of ${name} has no rule "${what}".`);
  return found.measured;
};
const count = ({ tables: [first] }, column) => first.rows[0][first.columns.indexOf(column)];
const seconds = (ms) => `${(ms / 1_000).toFixed(1)} s`;
const minutesOf = ({ command }) => /--minutes (\d+)/.exec(command)[1];

/** Returns the frames that the soak run sent, received and missed. Throws if a frame is missing without a gap. */
const soakCounts = (soak) => {
  const text = measured(soak, 'sent = received + missed in gaps');
  const [sent, received, missed] = text.split(/[=+]/).map(Number);
  if (sent !== received + missed) throw new Error(`The soak run lost frames without a gap: ${text}.`);
  return { sent, received, missed };
};

/** Returns functions of the figures by name, from the results by name. */
export const reliabilityFigures = (results) => {
  const { chaos, model, fuzz, filter, soak, storm, peers, mutation, cluster } = results;
  const [elections, relays] = [results['cluster-simulation'], results['relay-simulation']];
  const [logs, kills] = [results['log-simulation'], results['log-kills']];
  const rules = () => Object.values(results).flatMap(({ goals }) => goals);
  const ofCluster = (what) => () => measured(cluster, what);
  return {
    rules: () => rules().length,
    'rules-broken': () => rules().filter(({ met }) => !met).length,
    'chaos-minutes': () => minutesOf(chaos),
    'chaos-subscriptions': () => grouped(count(chaos, 'subscriptions')),
    'chaos-reconnects': () => grouped(count(chaos, 'reconnects')),
    'chaos-violations': () => measured(chaos, 'violations of the ten rules'),
    'model-steps': () => grouped(model.facts.steps),
    'model-differences': () => measured(model, 'sequences in which the feed and the model differ, or a rule is broken'),
    'fuzz-cases': () => grouped(fuzz.facts.cases),
    'fuzz-broken': () => measured(fuzz, 'cases that broke a property'),
    'filter-documents': () => grouped(filter.facts.documents),
    'filter-differences': () =>
      measured(filter, 'documents that whereField and JSON.parse read differently, or that make it throw'),
    'soak-minutes': () => minutesOf(soak),
    'soak-sent': () => grouped(soakCounts(soak).sent),
    'soak-millions': () => Math.round(soakCounts(soak).sent / 1e6),
    'soak-missed': () => grouped(soakCounts(soak).missed),
    'soak-heap': () => measured(soak, 'heap: slope, MB an hour').replace('flat: ', ''),
    'storm-half': () => seconds(cellOf(storm, 'shutdown (1001)', '50 %')),
    'storm-all': () => seconds(cellOf(storm, 'shutdown (1001)', 'all')),
    'storm-down': () => seconds(cellOf(storm, 'shutdown (1001)', 'service was down')),
    'storm-back': () => grouped(measured(storm, 'shutdown (1001): clients that received a frame again')),
    'kill-ms': ofCluster('kill -9 of the owner: frames of the new owner, p95'),
    'freeze-ms': ofCluster('SIGSTOP of the owner: frames of the new owner, maximum'),
    'deploy-ms': ofCluster('a rolling deployment: without frames, maximum'),
    'deploy-lost': ofCluster('frames lost in a rolling deployment, maximum'),
    'election-runs': () => grouped(elections.facts.runs),
    'election-bad': () => elections.goals[0].measured,
    'relay-runs': () => grouped(relays.facts.runs),
    'relay-lost': () => measured(relays, 'lost frames outside gaps'),
    'log-runs': () => grouped(logs.facts.runs),
    'log-bad': () => logs.goals[0].measured,
    'log-kills': () => measured(kills, 'kills of a writer'),
    'log-kills-lost': () => measured(kills, 'records that are lost, repeated, changed or skipped'),
    'peer-tests': () => peers.facts.tests,
    'peer-failed': () => measured(peers, 'tests that failed'),
    'mutants-least': () => `${Math.min(...mutation.goals.map((goal) => goal.measured))} %`,
  };
};
