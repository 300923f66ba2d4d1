import {
  Controller,
  Inject,
  type INestApplication,
  type LoggerService,
  type ModuleMetadata,
  Req,
  Sse,
} from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { afterEach, beforeEach } from '@jest/globals';
import { createParser, type EventSourceMessage } from 'eventsource-parser';
import { request, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { filter, firstValueFrom, type Observable, ReplaySubject, Subject } from 'rxjs';
import { getTradeFeedToken, type SseRequest, TradeFeed, TradeFeedModule } from '../../src/nestjs/index.js';
import { type ServiceEvent, startTradeFeedService } from '../../src/testing/index.js';
import type { TradeFeedAccount, TradeFeedService } from '../../src/testing/index.js';

/** A line that Nest has passed to a logger. */
export interface Line {
  readonly level: string;
  readonly text: string;
  readonly context: string;
}

/** A logger that stores its lines, and that a test can wait on. */
export class Log implements LoggerService {
  readonly lines: Line[] = [];
  readonly lines$ = new ReplaySubject<Line>();
  /** All arguments of all lines, including Nest's own. */
  raw = '';

  log = (...args: unknown[]) => this.#store('log', args);
  warn = (...args: unknown[]) => this.#store('warn', args);
  error = (...args: unknown[]) => this.#store('error', args);
  debug = (...args: unknown[]) => this.#store('debug', args);

  /** The lines of feeds only, as `level text`. */
  get ofFeeds(): string[] {
    return this.lines.filter(isOfFeed).map(({ level, text }) => `${level} ${text}`);
  }

  /** Waits for a line of a feed. An earlier line counts too. */
  async line(pattern: RegExp): Promise<Line> {
    return firstValueFrom(this.lines$.pipe(filter((line) => isOfFeed(line) && pattern.test(line.text))));
  }

  #store(level: string, args: readonly unknown[]): void {
    const line = { level, text: String(args[0]), context: String(args.at(-1)) };
    this.raw += `${args.map(String).join(' ')}\n`;
    this.lines.push(line);
    this.lines$.next(line);
  }
}

const isOfFeed = ({ context }: Line): boolean => context.startsWith('TradeFeed');

/** An application listening on a free port. */
export interface App {
  readonly app: INestApplication;
  readonly url: string;
  readonly log: Log;
}

/** Starts an application with modules, controllers and providers. */
export const startApp = async (metadata: ModuleMetadata): Promise<App> => {
  const log = new Log();
  const module = await Test.createTestingModule(metadata).setLogger(log).compile();
  const app = module.createNestApplication();
  await app.listen(0, '127.0.0.1');
  const { port } = (app.getHttpServer() as { address(): AddressInfo }).address();
  return { app, url: `http://127.0.0.1:${port}`, log };
};

export const fast = { initialDelayMs: 1, maxDelayMs: 5 };

/** Starts a service for each test. Closes it after the test, and before that the test's applications. */
export class LocalService {
  readonly events: ServiceEvent[] = [];
  readonly apps = new Set<{ close(): Promise<void> }>();
  service!: TradeFeedService;
  account!: TradeFeedAccount;
  /** The options of a module that connects to the service with the key of the account, and reconnects fast. */
  options!: { readonly baseUrl: string; readonly apiKey: string; readonly backoff: typeof fast };

  constructor() {
    beforeEach(async () => {
      this.service = await startTradeFeedService();
      this.account = this.service.createAccount({ plan: 'developer' });
      this.options = { baseUrl: this.service.baseUrl, apiKey: this.account.createApiKey(), backoff: fast };
      this.events.length = 0;
      this.service.events$.subscribe((event) => this.events.push(event));
    });
    afterEach(async () => {
      await Promise.all([...this.apps].map((app) => app.close()));
      this.apps.clear();
      await this.service.shutdown();
    });
  }

  get handshakes(): number {
    return this.events.filter(({ type }) => type === 'handshake-accepted').length;
  }

  otherKey = (): string => this.service.createAccount({ plan: 'developer' }).createApiKey();
  push = (text: string): void => this.service.push('market', text);

  /** Starts an application with a module for the service. Also returns the feed. */
  async start(options: Parameters<typeof TradeFeedModule.forRoot>[0] = {}, metadata: ModuleMetadata = {}) {
    const imports = [TradeFeedModule.forRoot({ ...this.options, ...options })];
    const started = await startApp({ ...metadata, imports });
    this.apps.add(started.app);
    const feed = started.app.get<TradeFeed>(getTradeFeedToken(options.name));
    return { ...started, feed };
  }

  /** Waits until a feed is open, pushes a frame, and returns its text as the feed emits it. */
  async receive(feed: TradeFeed, text = 'hello', name: 'market' | 'raw' = 'market'): Promise<string> {
    const frame = firstValueFrom(feed.frames$);
    await live(feed);
    this.service.push(name, text);
    return (await frame).text();
  }
}

/** A route that streams the feed to everybody. */
@Controller()
export class FeedController {
  @Inject(TradeFeed) readonly tradeFeed!: TradeFeed;
  @Sse('feed')
  feed(@Req() request: SseRequest) {
    return this.tradeFeed.sse(request, { authorize: 'everybody' });
  }
}

export const live = async ({ status$ }: TradeFeed) => when(status$, ({ state }) => state === 'live');
export const stopped = async ({ status$ }: TradeFeed) => when(status$, ({ state }) => state === 'stopped');

/** Waits for an event of a service. Call it before the event happens. */
export const serviceEvent = async (service: TradeFeedService, type: string) =>
  firstValueFrom(service.events$.pipe(filter((event) => event.type === type)));

/** Waits for the first value that satisfies a condition. */
export const when = async <T>(source$: Observable<T>, is: (value: T) => boolean): Promise<T> =>
  firstValueFrom(source$.pipe(filter(is)));

/** A client of Server-Sent Events that can pause reading. */
export interface SseClient {
  readonly response: IncomingMessage;
  readonly messages$: ReplaySubject<EventSourceMessage>;
  /** The received events. */
  readonly events: Record<string, unknown>[];
  /** Waits until a frame with this payload has arrived. */
  frame(payload: string): Promise<void>;
  /** Returns the received text. */
  text(): string;
  leave(): void;
}

/** Sends a request. Resolves with the response once its headers have arrived. */
export const get = async (url: string, headers: Record<string, string> = {}): Promise<IncomingMessage> =>
  new Promise((resolve, reject) => {
    request(url, { headers }).once('response', resolve).once('error', reject).end();
  });

/** Opens a stream of Server-Sent Events. */
export const openSse = async (url: string, headers: Record<string, string> = {}): Promise<SseClient> => {
  const response = await get(url, headers);
  const messages$ = new ReplaySubject<EventSourceMessage>();
  const events: Record<string, unknown>[] = [];
  const payloads = new Set<unknown>();
  const payloads$ = new Subject<unknown>();
  const chunks: string[] = [];
  const onEvent = (message: EventSourceMessage) => {
    messages$.next(message);
    for (const event of eventsIn(message)) {
      if (event['type'] !== 'watermark') events.push(event);
      payloads.add(event['data']);
      payloads$.next(event['data']);
    }
  };
  const parser = createParser({ onEvent });
  response
    .setEncoding('utf8')
    .on('data', (chunk: string) => {
      chunks.push(chunk);
      parser.feed(chunk);
    })
    .on('error', () => undefined)
    .on('close', () => messages$.complete());
  const frame = async (payload: string) => {
    if (!payloads.has(payload)) await when(payloads$, (received) => received === payload);
  };
  return { response, messages$, events, frame, text: () => chunks.join(''), leave: () => response.destroy() };
};

/** Returns the events in a message. */
export const eventsIn = ({ event, data }: EventSourceMessage): readonly Record<string, unknown>[] =>
  event === undefined && data !== '' ? data.split('\n').map((line) => JSON.parse(line) as Record<string, unknown>) : [];
