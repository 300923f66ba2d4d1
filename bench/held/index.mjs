// Frames that stay bytes, and frames that are held before they are read: this library and `ws`.
import { report, ROUNDS } from '../lib/bench.mjs';
import { startLoopback } from '../support/loopback.mjs';
import { neverBelow, receiversOf } from '../support/never-below.mjs';

const modes = ['bytes', 'held'];
const rounds = Math.ceil(ROUNDS / 2);
const loopback = await startLoopback();
const samplesOf = await loopback.measure({ title: 'held', receivers: receiversOf(modes), rounds });
await loopback.stop();
await report({
  bench: 'held',
  rounds,
  ...neverBelow({ bench: 'held', modes, samplesOf }),
});
