import { afterEach, expect } from '@jest/globals';
import { PassThrough, Writable } from 'node:stream';
import { Subject } from 'rxjs';
import type { CliContext, Interrupt } from '../../../src/cli/terminal.js';
import { run } from '../../../src/cli/program.js';
import type { TradeFeedAccount, TradeFeedService } from '../../../src/testing/index.js';
import { waitFor } from '../../support/wait-for.js';

/** A stdout or stderr that stores its text. It is a terminal if it has a size. */
export class FakeOutput extends Writable {
  text = '';
  readonly isTTY: boolean;
  columns: number;
  rows: number;
  /** The callback of a blocked write. */
  #blocked: ((error?: Error) => void) | undefined;
  #isBlocked = false;
  readonly #changes = new Subject<void>();

  constructor(size?: { readonly columns?: number; readonly rows?: number }) {
    super({ decodeStrings: true, highWaterMark: 1_024 });
    this.isTTY = size !== undefined;
    this.columns = size?.columns ?? 0;
    this.rows = size?.rows ?? 0;
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: (error?: Error) => void): void {
    this.text += chunk.toString();
    this.#changes.next();
    if (this.#isBlocked) this.#blocked = done;
    else done();
  }

  /** Blocks after the next write. */
  block(): void {
    this.#isBlocked = true;
  }

  /** Accepts writes again. */
  unblock(): void {
    this.#isBlocked = false;
    this.#blocked?.();
  }

  /** Breaks, for example because the reader has exited. */
  break(code: 'EPIPE' | 'ENOSPC'): void {
    const error = Object.assign(new Error(`write ${code}`), { code });
    // A write that the system has not taken yet fails, too.
    this.#blocked?.(error);
    this.destroy(error);
  }

  /** Waits until the text matches. */
  until(pattern: RegExp): Promise<RegExpExecArray> {
    return waitFor(() => pattern.exec(this.text), { on: this.#changes, what: () => `${pattern} in: ${this.text}` });
  }

  /** Says that the command has exited, so that nothing waits for more text. */
  exited(): void {
    this.#changes.complete();
  }
}

/** A context with fake streams and signals. */
export interface FakeContext extends CliContext {
  readonly stdin: PassThrough;
  readonly stdout: FakeOutput;
  readonly stderr: FakeOutput;
  readonly interrupt$: Subject<Interrupt>;
}

type Given = Partial<Pick<FakeContext, 'env' | 'stdin' | 'stdout' | 'stderr'>>;

/** Creates a context without terminals and with an empty environment by default. */
export const fakeContext = (given: Given = {}): FakeContext => ({
  env: {},
  stdin: new PassThrough(),
  stdout: new FakeOutput(),
  stderr: new FakeOutput(),
  interrupt$: new Subject(),
  ...given,
});

/** A command running in this process. */
export interface Running extends FakeContext {
  /** The exit code. */
  readonly exit: Promise<number>;
  /** Ends it with a signal, and returns the exit code. */
  readonly end: (signal?: Interrupt) => Promise<number>;
}

/**
 * Returns a function that runs command lines in this process. Ends the commands after each test, and fails it if one
 * printed its key or a ticket.
 */
export const commandRunner = (): ((line: string, given?: Given) => Running) => {
  const contexts: FakeContext[] = [];
  afterEach(() => {
    for (const { interrupt$, env, stdout, stderr } of contexts.splice(0)) {
      interrupt$.next('SIGTERM');
      const printed = stdout.text + stderr.text;
      expect(printed).not.toContain(env['TRADE_FEED_API_KEY'] ?? 'no key');
      expect(printed).not.toMatch(/ticket_/);
    }
  });
  return (line, given) => {
    const context = fakeContext(given);
    contexts.push(context);
    const exit = run(line.split(' ').filter(Boolean), context).finally(() => {
      context.stdout.exited();
      context.stderr.exited();
    });
    const end = (signal: Interrupt = 'SIGINT'): Promise<number> => {
      context.interrupt$.next(signal);
      return exit;
    };
    return { ...context, exit, end };
  };
};

/** Returns the settings for a service, with the key of a new account. */
export const envOf = (
  { baseUrl, createAccount }: TradeFeedService,
  account = createAccount({ plan: 'developer' }),
): Readonly<Record<'TRADE_FEED_BASE_URL' | 'TRADE_FEED_API_KEY', string>> => ({
  TRADE_FEED_BASE_URL: baseUrl,
  TRADE_FEED_API_KEY: account.createApiKey(),
});

/** Returns a function that runs a command as the client of a service, each time with a new account. */
export const clientRunner = (name: string, service: () => TradeFeedService) => {
  const command = commandRunner();
  return (args: string, given: Given = {}): Running & { readonly account: TradeFeedAccount } => {
    const account = service().createAccount({ plan: 'developer' });
    const env = { ...envOf(service(), account), ...given.env };
    return { ...command(`${name} ${args}`, { ...given, env }), account };
  };
};
