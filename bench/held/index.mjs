// Frames that stay bytes, and frames that are held before they are read: this library and `ws`.
import { ROUNDS } from '../lib/bench.mjs';
import { neverBelow } from '../support/never-below.mjs';

await neverBelow({ bench: 'held', modes: ['bytes', 'held'], rounds: Math.ceil(ROUNDS / 2) });
