// The figures of the landing page, from the results of the benchmarks and long checks.
import { readResult } from '../../bench/lib/write-result.mjs';

const receiving = readResult('bench/results/receiving.json');
const [chaos, soak] = ['chaos', 'soak'].map((name) => readResult(`reliability/results/${name}.json`));

const measured = ({ name, goals }, wanted) => {
  const goal = goals.find(({ id, what }) => id === wanted || what === wanted);
  if (goal === undefined) throw new Error(`The result of ${name} has no goal "${wanted}".`);
  return goal.measured;
};
const grouped = (number) => String(number).replaceAll(/\B(?=(\d{3})+$)/g, ',');

/** Returns three promises: a figure, what it is, and where it comes from. */
const promises = () => {
  const times = measured(receiving, 'receiving/ws/text/plain/0/200').toFixed(1);
  const [{ columns, rows }] = chaos.tables;
  const reconnects = grouped(rows[0][columns.indexOf('reconnects')]);
  const violations = measured(chaos, 'violations of the ten rules');
  const frames = measured(soak, 'sent = received + missed in gaps');
  const [sent, received, missed] = frames.split(/[=+]/).map(Number);
  if (sent !== received + missed) throw new Error(`The soak run lost frames without a gap: ${frames}.`);
  return [
    {
      figure: `${times}×`,
      title: 'Cheap frames',
      text: `ws takes ${times} times as much CPU time as this library for a frame of 200 bytes.`,
      link: '/performance',
    },
    {
      // A number isn't broken into two lines.
      figure: reconnects.replaceAll(',', '\u00a0'),
      title: 'Careful reconnects',
      text: `reconnects under random faults, with ${violations} violations of the ten rules.`,
      link: '/reliability#faults-and-random-input',
    },
    {
      figure: `${Math.round(sent / 1e6)} million`,
      title: 'Every loss reported',
      text: `frames in a soak run. ${grouped(missed).replaceAll(',', '\u00a0')} of them were missed in outages, and gaps report exactly that number.`,
      link: '/reliability#load',
    },
  ];
};

export default { watch: ['../../bench/results/*.json', '../../reliability/results/*.json'], load: promises };
