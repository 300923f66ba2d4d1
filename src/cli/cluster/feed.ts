import { noop, type Observable } from 'rxjs';
import { createFeedCluster } from '../../cluster/index.js';
import { type Feed, type FeedEvent, type OwnerChanged, tradeFeedEvents$ } from '../../index.js';
import type { ClusterArguments, ConnectionArguments } from '../arguments/parsed-command.js';
import { usageError } from '../cli-error.js';
import { connectionOptions } from '../connection.js';
import type { CliContext } from '../context.js';
import { connectEngine, engineAddress } from './engine.js';

/** The feed of a command. */
export interface CommandFeed {
  readonly events$: Observable<FeedEvent | OwnerChanged>;
  /** Gives the ownership of a cluster away, and closes the connection to its engine. */
  readonly close: () => Promise<void>;
}

/** The name of the account in a cluster, if `--account` is missing. */
export const defaultAccount = 'main';

/**
 * Creates the feed of a command: over a connection of this process, or as a replica of a cluster.
 *
 * @throws CliError for wrong arguments, or if the engine of the cluster cannot be reached
 */
export const commandFeed = async (
  feed: Feed,
  options: ConnectionArguments & ClusterArguments,
  context: CliContext,
): Promise<CommandFeed> => {
  const address = engineAddress(options, context);
  if (address === undefined) {
    const unused = options.account === undefined ? options.replica && '--replica' : '--account';
    if (unused) throw usageError(`${unused} applies only to a cluster. Use --cluster URL as well.`);
    return {
      events$: tradeFeedEvents$(feed, await connectionOptions(options, context)),
      close: () => Promise.resolve(),
    };
  }
  const feedOptions = await connectionOptions(options, context);
  const { engine, close } = await connectEngine(address);
  const { account = defaultAccount, replica } = options;
  const cluster = createFeedCluster(feed, { ...feedOptions, engine, account, replica });
  // The command unsubscribes before it ends, but the replica must give the ownership away first.
  const kept = cluster.events$.subscribe({ error: noop });
  return {
    events$: cluster.events$,
    close: async () => {
      await cluster.handOver();
      kept.unsubscribe();
      await close();
    },
  };
};
