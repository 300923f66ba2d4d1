import { afterAll, beforeAll, expect, jest } from '@jest/globals';
import { build } from 'esbuild';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { lastValueFrom, type Subscription, takeWhile } from 'rxjs';
import { startTradeFeedService } from 'rx-trade-feed/testing';
import type { TradeFeedAccount, TradeFeedService, TradeFeedServiceOptions } from 'rx-trade-feed/testing';
import { itInCi } from '../support/cases.js';
import { runModules, slowMachine } from '../support/run-modules.js';
import { startTestLimitMs } from '../support/wait-for.js';
import { root } from './fences.js';

jest.setTimeout(startTestLimitMs);

export interface FenceRun {
  readonly code: string;
  /** The pattern of a line that it prints. */
  readonly expected: RegExp;
  /** The environment variables with the address and the key of a service. */
  readonly env?: Readonly<Record<string, string>>;
}

/** The service of fences: each gets an account, because an account gets only one connection. */
export interface FenceService {
  readonly sources: TradeFeedServiceOptions['sources'];
  /** Called before the fences run, until they end. */
  readonly meanwhile?: (service: TradeFeedService, accounts: readonly TradeFeedAccount[]) => Subscription;
}

/**
 * Defines a test for each fence, which only CI runs: it prints its line. They all run from the first of these tests to the last one,
 * so nothing else may be in their `describe`.
 *
 * @param title - has `%s` for the name of the fence
 */
export const itPrints = (
  title: string,
  fences: readonly (FenceRun & { readonly name: string })[],
  local?: FenceService,
): void => {
  let service: TradeFeedService | undefined;
  let outside: Subscription | undefined;
  let running: RunningFences;
  beforeAll(async () => {
    service = local && (await startTradeFeedService({ sources: local.sources }));
    const accounts = service ? fences.map(() => service!.createAccount({ plan: 'developer' })) : [];
    outside = service && local?.meanwhile?.(service, accounts);
    const envs = accounts.map((account) => ({
      TRADE_FEED_BASE_URL: service!.baseUrl,
      TRADE_FEED_API_KEY: account.createApiKey(),
    }));
    running = await runFences(fences.map((fence, n) => ({ ...fence, ...(envs[n] && { env: envs[n] }) })));
  });
  afterAll(async () => {
    await running.end();
    outside?.unsubscribe();
    await service?.shutdown();
  });

  itInCi.each(fences.map(({ name }, index) => [name, index] as const))(title, async (_name, index) => {
    expect(await running.printed(index)).not.toBe('');
  });
};

interface Output {
  readonly stdout: string;
  readonly stderr: string;
}

/** A line that `logEvents` writes, unless the feed has stopped. */
const logLine = /^(Requesting|Ticket issued|Connected|Disconnected|Reconnect|Frames may be missing|Waiting)\b/;

interface RunningFences {
  /**
   * Waits until a fence prints its line, and returns the output. Rejects if it ends without that line or writes to stderr.
   * A fence with `logEvents(console)` logs to stderr, so its line can be in either stream; other lines there reject.
   */
  printed(index: number): Promise<string>;
  /** Stops all fences, because a fence may stream forever. */
  end(): Promise<void>;
}

/** Runs fences with the built package, in parallel in one child process. */
export const runFences = async (fences: readonly FenceRun[]): Promise<RunningFences> => {
  // Inside the project, so that imports resolve to the package.
  await mkdir(join(root, 'temp'), { recursive: true });
  const folder = await mkdtemp(join(root, 'temp/fences-'));
  const nameOf = (index: number): string => `fence-${index}`;
  const sources = fences.map(({ code }, index) => [`${nameOf(index)}.ts`, code] as const);
  for (const [name, text] of sources) await writeFile(join(folder, name), text);
  await build({
    entryPoints: sources.map(([name]) => join(folder, name)),
    outdir: folder,
    outExtension: { '.js': '.mjs' },
    format: 'esm',
    target: 'es2022',
    tsconfigRaw: { compilerOptions: { verbatimModuleSyntax: true } },
    logLevel: 'error',
  });
  const modules = fences.map(({ env = {} }, index) => ({
    url: pathToFileURL(join(folder, `${nameOf(index)}.mjs`)).href,
    env,
  }));
  const { outputs, end } = runModules(modules, folder);

  return {
    printed: async (index) => {
      const { code, expected: line } = fences[index]!;
      const expected = new RegExp(line, 'm');
      const isLogging = /logEvents\(console\b/.test(code);
      const isFound = ({ stdout, stderr }: Output): boolean =>
        expected.test(stdout) || (isLogging && expected.test(stderr));
      const isClean = ({ stderr }: Output): boolean =>
        stderr
          .split('\n')
          .slice(0, isLogging ? -1 : undefined)
          .every((text) =>
            isLogging ? logLine.test(text) : text === '' || isWarningOf(expected, text) || slowMachine.test(text),
          );
      const output = await lastValueFrom(
        outputs[index]!.pipe(takeWhile((output) => isClean(output) && !isFound(output), true)),
      );
      const { stdout, stderr } = output;
      if (isFound(output) && isClean(output)) return stdout + stderr;
      throw new Error(`expected a line like ${expected}\n${stdout}\n${stderr}`);
    },
    end: async () => {
      await end();
      await rm(folder, { recursive: true });
    },
  };
};

// A server that fails warns its operator.
const isWarningOf = (expected: RegExp, text: string): boolean =>
  expected.test(/\[(.+)\] TradeFeedWarning: /.exec(text)?.[1] ?? '') || text.startsWith('(Use `node --trace-warnings');
