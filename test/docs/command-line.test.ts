/** @lane processes */
import { afterAll, afterEach, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { mkdtempSync } from 'node:fs';
import { marketBatches$, startTradeFeedService } from 'rx-trade-feed/testing';
import type { TradeFeedService } from 'rx-trade-feed/testing';
import { exitCodeRows } from '../../src/cli/errors.js';
import { loadCommands } from '../../src/cli/program.js';
import { helpText } from '../cli/support/help-text.js';
import { endPrograms, shellCommand } from '../cli/support/program.js';
import { tempFolder } from '../cli/support/temp-folder.js';
import { itInCi } from '../support/cases.js';
import { withoutSlowness } from '../support/run-modules.js';
import { fencesOf, read } from './fences.js';
import { siteLibrary } from './site.js';
import { tablesUnder } from './tables.js';

const { commandLinePage } = await siteLibrary('command-text.mjs');
const commands = await loadCommands();
const help = await helpText();

const page = 'docs/command-line.md';

// Programs take long on a busy machine. Only a test that hangs reaches this.
jest.setTimeout(150_000);

describe('the page of the command line', () => {
  it('says what the command says: run scripts/site/update.mjs command-line', () => {
    expect(read(page)).toBe(commandLinePage(read(page), commands, exitCodeRows));
  });

  it('lists the environment variables of the help', () => {
    const [settings = []] = tablesUnder(page, 'Settings');
    const [, environment = ''] = /^Environment:\n([\s\S]+?)\n\n/m.exec(help) ?? [];
    const names = [...environment.matchAll(/^ {2}([A-Z_]+) /gm)].map(([, name]) => name);
    expect(settings.map((row) => row['variable'])).toEqual(names);
  });
});

describe('an example with expected output', () => {
  const examples = fencesOf(page).filter(({ mark }) => mark.startsWith('prints: '));
  let service: TradeFeedService;
  const folder = tempFolder();
  beforeAll(async () => {
    service = await startTradeFeedService({ sources: { market: marketBatches$() } });
  });
  afterAll(() => service.shutdown());
  afterEach(endPrograms);

  itInCi.each(examples.map(({ at, code, mark }) => [at, code, mark.replace('prints: ', '')] as const))(
    '%s prints that output, and succeeds',
    async (_at, code, expected) => {
      const command = code.replaceAll('npx rx-trade-feed', '$FEED');
      const running = shellCommand(`set -e -o pipefail; cd ${mkdtempSync(folder.path('example-'))}\n${command}`, {
        TRADE_FEED_BASE_URL: service.baseUrl,
        TRADE_FEED_API_KEY: service.createAccount({ plan: 'developer' }).createApiKey(),
      });
      const exit = await running.exit;
      expect({ exit, stdout: running.stdout(), stderr: withoutSlowness(running.stderr()) }).toEqual({
        exit: 0,
        stdout: expect.stringMatching(new RegExp(expected, 'm')),
        stderr: '',
      });
    },
  );
});
