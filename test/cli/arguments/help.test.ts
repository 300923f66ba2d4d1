import { describe, expect, it } from '@jest/globals';
import { noop } from 'rxjs';
import { commandNames, commands } from '../../../src/cli/arguments/commands.js';
import { helpText, parse } from '../../../src/cli/arguments/parse.js';
import { createProgram } from '../../../src/cli/arguments/program.js';
import {
  clusterExitCodeMeanings,
  demoExitCodeMeanings,
  doctorExitCodeMeanings,
  exitCodeMeanings,
  recordExitCodeMeanings,
  replayExitCodeMeanings,
  serveExitCodeMeanings,
  topExitCodeMeanings,
} from '../../../src/cli/exit-code.js';

const optionsOf = (name: string): readonly string[] =>
  createProgram(noop, noop)
    .commands.filter((command) => command.name() === name)
    .flatMap(({ options }) => options.map(({ long }) => long ?? ''));

describe('helpText', () => {
  it.each([undefined, ...commandNames])('of %s fits 80 columns, except for command lines', (name) => {
    const lines = helpText(name).split('\n');
    const wide = lines.filter((line) => line.length > 80 && !line.startsWith('  rx-trade-feed'));
    expect(wide).toStrictEqual([]);
    expect(helpText(name)).toMatch(/\S\n$/);
  });

  it.each(commandNames)('of %s names every option of the command, in order, and no other one', (name) => {
    const options = commands[name].options.map(({ long }) => long);
    const named = [...helpText(name).matchAll(/^ {2}(?:-\w, )?(--[a-z-]+)/gm)].map(([, option]) => option);
    expect(named).toEqual([...options, '--help']);
    expect(optionsOf(name)).toEqual(options);
  });

  it.each(commandNames)('of %s has examples that are valid command lines', (name) => {
    const examples = [...helpText(name).matchAll(/^ {2}# .*\n {2}(.*)$/gm)].map(([, line = '']) => line);
    expect(examples.length).toBeGreaterThan(1);
    for (const line of examples) {
      const [, args = ''] = /rx-trade-feed ([^|>]*)/.exec(line) ?? [];
      expect(parse(args.trim().split(' '))).toMatchObject({ command: name });
    }
  });

  it('names every exit code', () => {
    const meanings = {
      demo: demoExitCodeMeanings,
      listen: exitCodeMeanings,
      record: recordExitCodeMeanings,
      replay: replayExitCodeMeanings,
      serve: serveExitCodeMeanings,
      cluster: clusterExitCodeMeanings,
      doctor: doctorExitCodeMeanings,
      top: topExitCodeMeanings,
    };
    for (const [name, codes] of Object.entries(meanings)) {
      const shown = [...helpText(name as keyof typeof meanings).matchAll(/^ {2}(\d+) +\S/gm)].map(([, code]) => code);
      expect([name, shown]).toStrictEqual([name, Object.keys(codes)]);
    }
  });

  it.each(commandNames)('of %s explains the exit codes only with options of the command', (name) => {
    const [, codes = ''] = helpText(name).split('Exit codes');
    const named = codes.match(/--[a-z-]+/g) ?? [];
    expect(optionsOf(name)).toEqual(expect.arrayContaining(named));
  });

  it('of a command that does not use stdout has no exit code for stdout', () => {
    const [, codes] = helpText('record').split('Exit codes');
    expect(codes).not.toContain('stdout');
  });

  it('names the environment variables of a command that connects', () => {
    for (const name of ['demo', 'listen', 'record', 'doctor', 'top', undefined] as const)
      for (const variable of ['TRADE_FEED_API_KEY', 'HTTPS_PROXY', 'NO_PROXY', 'NODE_USE_ENV_PROXY'])
        expect(helpText(name)).toMatch(new RegExp(`^ {2}${variable} `, 'm'));
    expect(helpText('replay')).not.toContain('TRADE_FEED_API_KEY');
  });

  it('shows the command to begin with', () => {
    expect(helpText()).toMatch(/^Usage: rx-trade-feed \[options\] \[command\]$/m);
    expect(helpText()).toMatch(/^ {2}rx-trade-feed demo$/m);
  });
});
