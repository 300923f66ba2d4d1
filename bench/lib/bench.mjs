// All that a bench needs: samples, each a fresh process, interleaved; ratios of pairs; goals; one report.
export { goal } from './goal.mjs';
export { interleaved } from './interleaved.mjs';
export { ROUNDS, isQuick } from './options.mjs';
export { report } from './report.mjs';
export { sample } from './sample.mjs';
export { median, pairedRatio, summary } from './stats.mjs';
