// Removes all globals except those of JavaScript itself: no TextDecoder, Buffer, fetch or timers. A page's test environment may lack any of them. Then
// imports entry points of the package, and reads a frame with the codec that comes back. Prints its text by entry point; `true` if one has no `Frame`.
import 'node:http'; // Node's own module needs some of them from version 22 on
import { argv } from 'node:process';
import { runInNewContext } from 'node:vm';
import '@angular/core';
import 'rxjs/fetch';

const { TextDecoder, console } = globalThis;
const ofJavaScript = runInNewContext('Object.getOwnPropertyNames(globalThis)');
for (const name of Object.getOwnPropertyNames(globalThis)) if (!ofJavaScript.includes(name)) delete globalThis[name];

const entries = [];
for (const name of argv.slice(2)) entries.push([name, await import(name)]);
globalThis.TextDecoder = TextDecoder;
const results = entries.map(([name, { Frame }]) => [
  name,
  Frame === undefined || new Frame('raw', Uint8Array.of(65, 66), false, 0, 1).text(),
]);
console.log(JSON.stringify(Object.fromEntries(results)));
