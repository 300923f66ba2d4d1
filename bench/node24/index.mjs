// Receiving on Node 24: this library and `ws`. Installs that Node from npm, unless it is there.
import { join } from 'node:path';
import { installNode, nodeVersions } from '../../scripts/install.mjs';
import { report, ROUNDS } from '../lib/bench.mjs';
import { startLoopback } from '../support/loopback.mjs';
import { neverBelow, receiversOf } from '../support/never-below.mjs';

const version = nodeVersions.find((each) => each.startsWith('24.'));
const node = join(installNode(version), 'node');
const modes = ['text'];
const rounds = Math.ceil(ROUNDS / 3);
const loopback = await startLoopback();
const samplesOf = await loopback.measure({ title: 'node24', receivers: receiversOf(modes), node, rounds });
await loopback.stop();
await report({
  bench: 'node24',
  rounds,
  ...neverBelow({ bench: 'node24', modes, samplesOf, where: `, Node ${version}` }),
});
