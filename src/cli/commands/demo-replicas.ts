import { catchError, EMPTY, exhaustMap, filter, firstValueFrom, interval, from, map, merge } from 'rxjs';
import { NEVER, Observable, share, Subject, type Subscriber, timer } from 'rxjs';
import { ReadStream } from 'node:tty';
import type { Feed, TradeFeedOptions } from '../../index.js';
import type { DemoCommand } from '../arguments/parsed-command.js';
import { usageError } from '../cli-error.js';
import { targetOf } from '../connection.js';
import type { CliContext } from '../context.js';
import { endingOf, endings$, exitCodeOfEnding } from '../follow/ending.js';
import type { Ending } from '../follow/event.js';
import { type Broker, startBroker } from '../replicas/broker.js';
import type { DemoCluster, DemoReplica } from '../replicas/demo-replica.js';
import { localCluster } from '../replicas/local-cluster.js';
import { processCluster } from '../replicas/process-cluster.js';
import { replicasTickMs } from '../replicas/replicas-panel.js';
import { emptyReplicas, type ReplicasEvent, type ReplicasTally, talliedReplicas } from '../replicas/replicas-tally.js';
import { replicasSummary, replicasView } from '../replicas/replicas-view.js';
import { demoService } from './demo-service.js';

/**
 * Shows replicas of a local service that share one connection, with keys to end them and to move the ownership.
 *
 * @param findBroker - starts a server that connects processes. Without one, the replicas run in this process
 * @returns the exit code
 * @throws CliError for options that do not apply
 */
export const demoReplicas = async (
  command: DemoCommand & { readonly options: { readonly replicas: number } },
  context: CliContext,
  findBroker: () => Promise<Broker | undefined> = startBroker,
): Promise<number> => {
  const { feed, options } = command;
  const { baseUrl, hasKey } = targetOf(options, context);
  if (baseUrl !== undefined || hasKey)
    throw usageError('--replicas applies only to the local service: unset TRADE_FEED_BASE_URL and TRADE_FEED_API_KEY.');
  const service = await demoService({ ...command, options: { outageEvery: 0, ...options } }, context);
  const cluster = await startCluster(feed, service.options, context, findBroker);
  try {
    const names = Array.from({ length: options.replicas }, (_, index) => `replica-${index + 1}`);
    const { ending, tally } = await run(cluster, names, options.duration, context);
    context.stdout.write(`${replicasSummary(tally).join('\n')}\n`);
    if (ending.kind === 'failed') throw ending.error;
    const connections = tally.generation;
    return exitCodeOfEnding(ending, { durationMs: options.duration }, { connections });
  } finally {
    await cluster.close();
    await service.close();
  }
};

const startCluster = async (
  feed: Feed,
  options: TradeFeedOptions,
  { env }: CliContext,
  findBroker: () => Promise<Broker | undefined>,
): Promise<DemoCluster> => {
  const broker = await findBroker();
  if (broker === undefined) return localCluster(feed, options);
  const address = { TRADE_FEED_BASE_URL: options.baseUrl, TRADE_FEED_API_KEY: String(options.apiKey) };
  return processCluster(feed, broker, { ...env, ...address }).catch(async () => {
    // The client of this server is not installed.
    await broker.close();
    return localCluster(feed, options);
  });
};

/** How often the owner is read, in ms. */
const stateMs = 250;

const run = async (
  cluster: DemoCluster,
  names: readonly string[],
  durationMs: number | undefined,
  context: CliContext,
): Promise<{ readonly ending: Ending; readonly tally: ReplicasTally }> => {
  const events = new Subject<ReplicasEvent>();
  const replicas = new Map<number, DemoReplica>();
  let tally = emptyReplicas(names, Date.now());
  const view = replicasView(context, cluster.description);

  const start = (index: number): void => {
    if (replicas.has(index)) return;
    const replica = cluster.start(names[index] ?? '');
    replicas.set(index, replica);
    events.next({ type: 'started', index });
    replica.events$.subscribe({
      next: (event) => events.next({ type: 'event', index, event }),
      complete: () => {
        replicas.delete(index);
        events.next({ type: 'ended', index });
      },
    });
  };

  const press = (key: string): void => {
    const name = names[tally.selected] ?? '';
    const note = (text: string): void => events.next({ type: 'note', text });
    const selected = replicas.get(tally.selected);
    if (/^[1-9]$/.test(key)) events.next({ type: 'selected', index: Number(key) - 1 });
    if (key === 'r') start(tally.selected);
    if (key === 'k' && selected) {
      note(`kill -9 ${name}`);
      selected.kill();
    }
    if (key === 's' && selected) {
      note(`stop ${name}`);
      selected.stop();
    }
    if (key === 'h') {
      note('hand over');
      cluster.handOver().catch(() => note('the owner did not answer'));
    }
  };

  const running = merge(
    events,
    interval(replicasTickMs).pipe(map(() => ({ type: 'tick' as const }))),
    interval(stateMs).pipe(
      exhaustMap(() => from(cluster.state()).pipe(catchError(() => EMPTY))),
      map((state) => ({ type: 'state' as const, state })),
    ),
  ).subscribe((event) => {
    tally = talliedReplicas(tally, event, Date.now());
    view.show(event, tally);
  });
  const keys$ = keysOf(context);
  running.add(keys$.subscribe(press));
  try {
    names.forEach((_, index) => start(index));
    const ending = await firstValueFrom(
      merge(
        endings$(context),
        keys$.pipe(
          filter((key) => key === 'q' || key === controlC),
          map((): Ending => ({ kind: 'interrupted', signal: 'SIGINT' })),
        ),
        durationMs === undefined ? NEVER : timer(durationMs).pipe(map((): Ending => ({ kind: 'time-up' }))),
      ),
    );
    return { ending: endingOf(context.stdout) ?? ending, tally };
  } finally {
    running.unsubscribe();
    view.close();
  }
};

/** What a terminal in raw mode sends for Ctrl-C. */
const controlC = '\x03';

/** Emits the keys of a terminal. Emits nothing if stdin is not a terminal. */
const keysOf = ({ stdin }: CliContext): Observable<string> =>
  stdin instanceof ReadStream
    ? new Observable<string>((subscriber) => readKeys(stdin, subscriber)).pipe(share())
    : NEVER;

const readKeys = (stdin: ReadStream, subscriber: Subscriber<string>): (() => void) => {
  const receive = (data: Buffer): void => Array.from(data.toString('latin1')).forEach((key) => subscriber.next(key));
  stdin.setRawMode(true).on('data', receive).resume();
  return () => {
    stdin.off('data', receive).pause();
    stdin.setRawMode(false);
  };
};
