// The figures of the landing page. They are those of the guides, from the results of the benchmarks and long checks.
import { performanceFigures } from '../../bench/lib/figures.mjs';
import { readResults as benchmarks } from '../../bench/lib/update-docs.mjs';
import { reliabilityFigures } from '../../reliability/lib/figures.mjs';
import { readResults as checks } from '../../reliability/lib/pages.mjs';

// A number isn't broken into two lines.
const whole = (text) => text.replaceAll(',', '\u00a0');

/** Returns three promises: a figure, what it is, and where it comes from. */
export const promises = () => {
  const [speed, care] = [performanceFigures(benchmarks()), reliabilityFigures(checks())];
  return [
    {
      figure: `${speed['ws-200']()}×`,
      title: 'Cheap frames',
      text: `ws takes ${speed['ws-200']()} times as much CPU time as this library for a frame of 200 bytes.`,
      link: '/performance',
    },
    {
      figure: whole(care['chaos-reconnects']()),
      title: 'Careful reconnects',
      text: `reconnects under random faults, with ${care['chaos-violations']()} violations of the ten rules.`,
      link: '/reliability/faults#chaos',
    },
    {
      figure: `${care['soak-millions']()} million`,
      title: 'Every loss reported',
      text: `frames in a soak run. ${whole(care['soak-missed']())} of them were missed in outages, and gaps report exactly that number.`,
      link: '/reliability/load#soak',
    },
  ];
};
