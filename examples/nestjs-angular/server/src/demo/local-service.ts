import { defer, filter, firstValueFrom, type Observable, race, retry, Subject, take, timer } from 'rxjs';
import { type TradeFeedOptions, tradeFeedEvents$ } from 'rx-trade-feed';
import {
  pendingTransactions$,
  type ServiceEvent,
  startTradeFeedService,
  type TradeFeedAccount,
  type TradeFeedService,
} from 'rx-trade-feed/testing';
import type { Settings } from '../settings.js';
import { DemoAgent } from './demo-agent.js';
import { tradeBatches$ } from './trade-batches.js';

/** The maximum number of frames of a flood. */
const floodFrames = 20_000;

/** Controls a local service that implements the contract. */
export class LocalService {
  private readonly settings: Settings;
  private readonly source: Observable<string>;
  private readonly agent = new DemoAgent();
  private service: TradeFeedService;
  private account: TradeFeedAccount;
  private apiKey: string;
  private isClosed = false;
  /** Ends an outage early. */
  private readonly restored$ = new Subject<void>();

  constructor(settings: Settings, source: Observable<string>, service: TradeFeedService) {
    this.settings = settings;
    this.source = source;
    this.service = service;
    this.account = service.createAccount({ plan: 'developer' });
    this.apiKey = this.account.createApiKey();
  }

  /** The length of an outage in seconds. */
  get outageS(): number {
    return this.settings.outageS;
  }

  /** The options of a feed that connects to this service. */
  get feedOptions(): TradeFeedOptions {
    return {
      baseUrl: this.service.baseUrl,
      apiKey: () => this.apiKey,
      agent: this.agent,
      // An outage of the demo is short, so the delays are short too.
      backoff: { maxDelayMs: 4_000 },
    };
  }

  /** Closes with 4003 `access expired`. The next ticket is granted. */
  expireAccess(): void {
    this.account.expireAccess();
  }

  /** Closes with 4003 `access revoked`, and grants no tickets until access is restored. */
  revokeAccess(): void {
    this.account.revokeAccess();
  }

  /** Grants tickets again, and ends an outage. */
  restoreAccess(): void {
    this.account.restoreAccess();
    this.restored$.next();
  }

  private async outageIsOver(): Promise<void> {
    await firstValueFrom(race(timer(this.outageS * 1_000), this.restored$), { defaultValue: undefined });
  }

  /** Connects another client of the account for a moment: 4001. */
  async replace(): Promise<void> {
    const { baseUrl, apiKey } = this.feedOptions;
    const opened$ = tradeFeedEvents$(this.settings.feed, {
      baseUrl: baseUrl as string,
      apiKey: apiKey as () => string,
    });
    await firstValueFrom(
      opened$.pipe(
        filter(({ type }) => type === 'opened'),
        take(1),
      ),
    );
  }

  /** Shuts the service down, and starts it again after a while: 1001. */
  async shutdown(): Promise<void> {
    const { port } = new URL(this.service.baseUrl);
    await this.service.shutdown();
    await this.outageIsOver();
    if (this.isClosed) return;
    // Another program can have used the port meanwhile, also for a connection.
    const restarted$ = defer(() => startService(this.settings, this.source, Number(port)));
    this.service = await firstValueFrom(restarted$.pipe(retry({ count: 60, delay: 1_000 })));
    this.account = this.service.createAccount({ plan: 'developer' });
    this.apiKey = this.account.createApiKey();
  }

  /** Pushes more frames at once than the relay can read: 1013. */
  flood(): void {
    const closes: unknown[] = [];
    const isClose = filter(({ type }: ServiceEvent) => type === 'connection-closed');
    const watching = this.service.events$.pipe(isClose).subscribe((close) => closes.push(close));
    const payload = JSON.stringify({ flood: 'x'.repeat(16 * 1024) });
    for (let pushed = 0; pushed < floodFrames && closes.length === 0; pushed += 1) {
      this.service.push(this.settings.feed, payload);
    }
    watching.unsubscribe();
  }

  /** Writes a message to the connection, like a broken proxy: 1008. */
  scribble(): void {
    this.agent.scribble();
  }

  /** Breaks the connection without a close frame. */
  drop(): void {
    this.agent.drop();
  }

  /** Breaks the connection, and grants no tickets for a while. */
  async outage(): Promise<void> {
    this.service.failCredentials(true);
    this.agent.drop();
    await this.outageIsOver();
    if (!this.isClosed) this.service.failCredentials(false);
  }

  /** Shuts the service down. */
  async close(): Promise<void> {
    this.isClosed = true;
    await this.service.shutdown();
  }
}

/** Starts a local service. */
export const localService = async (settings: Settings): Promise<LocalService> => {
  const { feed, rate } = settings;
  const source =
    feed === 'market' ? tradeBatches$({ rate }) : pendingTransactions$({ rate, seed: Date.now() % 2 ** 32 });
  return new LocalService(settings, source, await startService(settings, source, 0));
};

const startService = ({ feed }: Settings, source: Observable<string>, port: number): Promise<TradeFeedService> =>
  startTradeFeedService({ port, sources: { [feed]: source }, limits: { ticketsPerWindow: 1_000 } });
