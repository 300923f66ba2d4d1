/**
 * @lane processes
 * @ci
 */
import { beforeAll, describe, expect, it, jest } from '@jest/globals';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { tempFolder } from '../cli/support/temp-folder.js';
import { isAllCases } from '../support/cases.js';
import { listen } from '../support/listen.js';

// Each test starts npm, which takes long on a busy machine. Only a test that hangs reaches this.
jest.setTimeout(120_000);

const script = join(import.meta.dirname, '../../scripts/audit.mjs');
const locked = {
  version: '1.0.0',
  resolved: 'https://registry.example/left/-/left-1.0.0.tgz',
  integrity: 'sha512-AA==',
};

const folder = tempFolder();

beforeAll(async () => {
  const dependencies = { left: '^1.0.0' };
  const packages = { '': { name: 'app', version: '1.0.0', dependencies }, 'node_modules/left': locked };
  await folder.file('package.json', JSON.stringify({ name: 'app', version: '1.0.0', dependencies }));
  await folder.file('package-lock.json', JSON.stringify({ name: 'app', lockfileVersion: 3, packages }));
});

/** Audits a project with one dependency against a registry that gives this answer. */
const audit = async (registry: RequestListener) => {
  await using server = await listen(createServer(registry));
  const child = spawn(process.execPath, [script], {
    cwd: folder.path('.'),
    env: {
      PATH: process.env['PATH'],
      npm_config_registry: `http://127.0.0.1:${server.port}/`,
      npm_config_cache: folder.path('cache'),
      npm_config_fetch_retries: '0',
      npm_config_update_notifier: 'false',
    },
  });
  const [[code], said] = await Promise.all([
    once(child, 'close') as Promise<[number]>,
    Promise.all([text(child.stdout), text(child.stderr)]),
  ]);
  return { code, said: said.join('') };
};

const left = {
  name: 'left',
  'dist-tags': { latest: '1.0.0' },
  versions: { '1.0.0': { name: 'left', version: '1.0.0' } },
};
const finding = {
  id: 1,
  url: 'https://advisories.example/1',
  title: 'Leaks',
  severity: 'high',
  vulnerable_versions: '<2',
};

describe('the audit of what users install', () => {
  it('passes if the registry reports nothing', async () => {
    const { code, said } = await audit((_, response) => response.end('{}'));
    expect(said).toContain('audit: 0 vulnerable packages');
    expect(code).toBe(0);
  });

  it('fails and names the finding if there is one', async () => {
    const { code, said } = await audit((request, response) =>
      response.end(JSON.stringify(request.method === 'POST' ? { left: [finding] } : left)),
    );
    expect(said).toContain('audit: high: left');
    expect(said).toContain('Leaks https://advisories.example/1');
    expect(code).toBe(1);
  });

  it.each(isAllCases ? [405, 503] : [503])(
    'fails and says that nothing was checked if the registry answers %i',
    async (status) => {
      const { code, said } = await audit((_, response) => response.writeHead(status).end());
      expect(said).toContain('NOT CHECKED');
      expect(code).toBe(3);
    },
  );
});
