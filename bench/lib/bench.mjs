// The library of the benchmarks: interleaved samples, each in a new process; ratios of pairs; goals; the report.
export { goal } from './goal.mjs';
export { interleaved, measured } from './interleaved.mjs';
export { ROUNDS, isQuick } from './options.mjs';
export { report } from './report.mjs';
export { sample } from './sample.mjs';
export { median, medianOf, pairedRatio, spreadOf, summary } from './stats.mjs';
