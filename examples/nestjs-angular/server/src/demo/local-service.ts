import { filter, firstValueFrom, type Observable, take, timer } from 'rxjs';
import { type TradeFeedOptions, tradeFeedEvents$ } from 'rx-trade-feed';
import {
  pendingTransactions$,
  type ServiceEvent,
  startTradeFeedService,
  type TradeFeedAccount,
  type TradeFeedService,
} from 'rx-trade-feed/testing';
import type { Settings } from '../settings.js';
import { HeldAgent } from './held-agent.js';
import { tradeBatches$ } from './trade-batches.js';

/** The most frames that are pushed at once to make the relay too slow. */
const floodFrames = 20_000;

/** A service of the contract on this machine, and what can be done to it. */
export class LocalService {
  private readonly settings: Settings;
  private readonly source: Observable<string>;
  private readonly agent = new HeldAgent();
  private service: TradeFeedService;
  private account: TradeFeedAccount;
  private apiKey: string;
  private isClosed = false;

  constructor(settings: Settings, source: Observable<string>, service: TradeFeedService) {
    this.settings = settings;
    this.source = source;
    this.service = service;
    this.account = service.createAccount({ plan: 'developer' });
    this.apiKey = this.account.createApiKey();
  }

  /** How long an outage is, in seconds. */
  get outageS(): number {
    return this.settings.outageS;
  }

  /** How to connect to it. */
  get feedOptions(): TradeFeedOptions {
    return {
      baseUrl: this.service.baseUrl,
      apiKey: () => this.apiKey,
      agent: this.agent,
      // An outage of the demo is short: so are the waits.
      backoff: { maxDelayMs: 4_000 },
    };
  }

  /** Access expires: 4003, and the next ticket is granted. */
  expireAccess(): void {
    this.account.expireAccess();
  }

  /** Access is revoked: 4003, and no ticket is granted until it is restored. */
  revokeAccess(): void {
    this.account.revokeAccess();
  }

  /** Access is restored. */
  restoreAccess(): void {
    this.account.restoreAccess();
  }

  /** Another client of the account connects, and goes again: 4001. */
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

  /** The service shuts down, and is back after a while: 1001. */
  async shutdown(): Promise<void> {
    const { port } = new URL(this.service.baseUrl);
    await this.service.shutdown();
    await firstValueFrom(timer(this.outageS * 1_000));
    if (this.isClosed) return;
    this.service = await startService(this.settings, this.source, Number(port));
    this.account = this.service.createAccount({ plan: 'developer' });
    this.apiKey = this.account.createApiKey();
  }

  /** More frames at once than the relay's socket takes: 1013. */
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

  /** Something between the relay and the service writes to the connection: 1008. */
  scribble(): void {
    this.agent.scribble();
  }

  /** The network breaks the connection off. */
  drop(): void {
    this.agent.drop();
  }

  /** The network breaks off, and for a while the service grants no tickets. */
  async outage(): Promise<void> {
    this.service.failCredentials(true);
    this.agent.drop();
    await firstValueFrom(timer(this.outageS * 1_000));
    if (!this.isClosed) this.service.failCredentials(false);
  }

  /** Ends it. */
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
