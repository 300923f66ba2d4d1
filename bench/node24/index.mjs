// Receiving on Node 24: this library and `ws`. Installs that Node from npm, unless it is there.
import { join } from 'node:path';
import { installNode, nodeVersions } from '../../scripts/install.mjs';
import { ROUNDS } from '../lib/bench.mjs';
import { neverBelow } from '../support/never-below.mjs';

const version = nodeVersions.find((each) => each.startsWith('24.'));
const node = join(installNode(version), 'node');
const where = `, Node ${version}`;
await neverBelow({ bench: 'node24', modes: ['text'], rounds: Math.ceil(ROUNDS / 3), node, where });
