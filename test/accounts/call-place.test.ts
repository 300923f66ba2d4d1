import { afterEach, expect, it, jest } from '@jest/globals';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { callPlace } from '../../src/accounts/call-place.js';

const inside = join(process.cwd(), 'src', 'app.js');

afterEach(() => void jest.restoreAllMocks());

it.each([
  ['a named function of a module', `    at run (${pathToFileURL(inside).href}:12:3)`, `${join('src', 'app.js')}:12:3`],
  ['a module', `    at ${pathToFileURL(inside).href}:4:5`, `${join('src', 'app.js')}:4:5`],
  ['a file outside the working directory', '    at run (/elsewhere/app.js:1:2)', '/elsewhere/app.js:1:2'],
  ['code after an `await`', '    at async /elsewhere/app.js:1:2', '/elsewhere/app.js:1:2'],
  ['native code', '    at Array.map (<anonymous>)', 'an unknown place'],
  ['a stack that is too short', '', 'an unknown place'],
])('names the place of %s', (_, line, place) => {
  jest.spyOn(Error, 'captureStackTrace').mockImplementation((trace) => {
    Object.assign(trace, { stack: `Error\n    at first (first.js:1:1)${line && `\n${line}`}` });
  });
  expect(callPlace()).toBe(place);
});
