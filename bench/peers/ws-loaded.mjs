// ws in a process that has loaded the packages of this library, as ours has: the same live objects for the garbage collector.
import 'io-ts';
import 'undici';
import '../../dist/index.js';

export { open } from './ws.mjs';
