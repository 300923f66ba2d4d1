import type { Feed, TradeFeedOptions } from '../../index.js';
import type { DemoCommand } from '../arguments/parsed-command.js';
import { usageError } from '../cli-error.js';
import { targetOf } from '../connection.js';
import type { CliContext } from '../context.js';
import { exitCodeOfEnding } from '../follow/ending.js';
import { type Broker, startBroker } from '../replicas/broker.js';
import type { DemoCluster } from '../replicas/demo-replica.js';
import { localCluster } from '../replicas/local-cluster.js';
import { processCluster } from '../replicas/process-cluster.js';
import { replicasSummary } from '../replicas/replicas-view.js';
import { showReplicas } from '../replicas/show-replicas.js';
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
  findBroker: () => Promise<Broker | undefined> = () => startBroker(),
): Promise<number> => {
  const { feed, options } = command;
  const { baseUrl, hasKey } = targetOf(options, context);
  if (baseUrl !== undefined || hasKey)
    throw usageError('--replicas applies only to the local service: unset TRADE_FEED_BASE_URL and TRADE_FEED_API_KEY.');
  const service = await demoService({ ...command, options: { outageEvery: 0, ...options } }, context);
  const cluster = await startCluster(feed, service.options, context, findBroker);
  try {
    const names = Array.from({ length: options.replicas }, (_, index) => `replica-${index + 1}`);
    const { ending, tally } = await showReplicas(cluster, names, options.duration, context);
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
