import { describe, expect, test } from '@jest/globals';
import { commands } from '../../../src/cli/arguments/commands.js';
import { helpText } from '../../../src/cli/arguments/help.js';
import { parse } from '../../../src/cli/arguments/parse.js';
import {
  exitCodeMeanings,
  recordExitCodeMeanings,
  replayExitCodeMeanings,
  serveExitCodeMeanings,
} from '../../../src/cli/exit-code.js';

const names = Object.keys(commands) as (keyof typeof commands)[];

describe('helpText', () => {
  test.each([undefined, ...names])('of %s fits 80 columns, but for a command line', (name) => {
    const lines = helpText(name).split('\n');
    const wide = lines.filter((line) => line.length > 80 && !line.startsWith('  rx-trade-feed'));
    expect(wide).toStrictEqual([]);
    expect(helpText(name)).toMatch(/\S\n$/);
  });

  test.each(names)('of %s names every option', (name) => {
    for (const option of Object.keys(commands[name].options)) expect(helpText(name)).toContain(`--${option}`);
  });

  test.each(names)('of %s gives examples that can be typed', (name) => {
    for (const [line] of commands[name].examples) {
      const [, args = ''] = /rx-trade-feed ([^|>]*)/.exec(line) ?? [];
      expect(parse(args.trim().split(' '))).toMatchObject({ command: name });
    }
  });

  test('names every exit code', () => {
    const meanings = {
      listen: exitCodeMeanings,
      record: recordExitCodeMeanings,
      replay: replayExitCodeMeanings,
      serve: serveExitCodeMeanings,
    };
    for (const [name, codes] of Object.entries(meanings)) {
      const shown = [...helpText(name as keyof typeof meanings).matchAll(/^ {2}(\d+) +\S/gm)].map(([, code]) => code);
      expect([name, shown]).toStrictEqual([name, Object.keys(codes)]);
    }
  });

  test('says nothing of stdout to whom it is not used for', () => {
    const [, codes] = helpText('record').split('Exit codes');
    expect(codes).not.toContain('stdout');
  });

  test('begins with what to type first', () => {
    expect(helpText()).toMatch(/^Usage: rx-trade-feed COMMAND \[options\]$/m);
    expect(helpText()).toMatch(/^ {2}rx-trade-feed demo$/m);
  });
});
