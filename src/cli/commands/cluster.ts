import { type ClusterState, readClusterState, requestHandOver, resumeCluster } from '../../cluster/operate.js';
import { printable } from '../../protocol/printable.js';
import type { ClusterCommand } from '../arguments/parsed-command.js';
import { CliError, usageError } from '../cli-error.js';
import { type ConnectedEngine, connectEngine, engineAddress } from '../cluster/engine.js';
import { defaultAccount } from '../cluster/feed.js';
import type { CliContext } from '../context.js';
import { ExitCode } from '../exit-code.js';
import { counted, duration } from '../view/units.js';

/**
 * Shows the state of a cluster, moves the ownership to another replica, or allows the replicas to connect again.
 *
 * @param connect - connects to the engine at an address
 * @returns the exit code
 * @throws CliError if the engine cannot be reached, or if there is nothing to do
 */
export const cluster = async (
  { action, options }: ClusterCommand,
  context: CliContext,
  connect: (address: string) => Promise<ConnectedEngine> = connectEngine,
): Promise<number> => {
  const address = engineAddress(options, context);
  if (address === undefined)
    throw usageError('The address of the engine is missing. Set TRADE_FEED_CLUSTER or use --cluster URL.');
  const account = options.account ?? defaultAccount;
  const { engine, close } = await connect(address);
  try {
    const state = await readClusterState(engine, account);
    switch (action) {
      case 'status':
        context.stdout.write(
          options.json ? `${JSON.stringify(state)}\n` : `${statusText(state, Date.now()).join('\n')}\n`,
        );
        break;
      case 'hand-over': {
        if (state.standbys.length === 0) throw nothingToDo('There is no other replica that could own the connection.');
        if (!(await requestHandOver(engine, account))) throw nothingToDo('There is no owner.');
        context.stdout.write('The owner gives the ownership away.\n');
        break;
      }
      case 'resume':
        if (!(await resumeCluster(engine, account))) throw nothingToDo('The cluster has not stopped.');
        context.stdout.write('The replicas may connect again. Restart those that have stopped.\n');
    }
    return ExitCode.ok;
  } finally {
    await close();
  }
};

const nothingToDo = (what: string): Error => new CliError(ExitCode.refused, what);

/** Describes the state of a cluster, one line for each fact. */
export const statusText = ({ key, standbys }: ClusterState, now: number): readonly string[] => {
  if (key === undefined) return ['no replica has owned the connection of this account yet'];
  const age = (at: number): string => duration(Math.max(0, now - at));
  const { owner, phase, gen, since, feed, stop, evictions, changes } = key;
  const state = {
    open: `${printable(owner)}, for ${age(since)}`,
    opening: `${printable(owner)}, which opens a connection, for ${age(since)}`,
    free: stop ? 'none: the replicas may connect again' : 'none: the last one gave the ownership away',
    stopped: `none: another client replaced the connection${stop ? `, ${age(stop.at)} ago` : ''}; cluster resume allows the replicas to connect again`,
  }[phase];
  return [
    `owner       ${state}`,
    `feed        ${feed}`,
    `generation  ${gen}`,
    `standbys    ${standbys.length === 0 ? 'none' : standbys.map(({ replica }) => printable(replica)).join(', ')}`,
    `evictions   ${evictions.length === 0 ? 'none' : counted(evictions.length, 'connection')} in the last minute`,
    ...changes
      .map((change, n) => `${change.gen}, ${age(change.since)} ago: ${changeText(change, changes[n - 1])}`)
      .reverse()
      .map((line, n) => `${(n === 0 ? 'hand-overs' : '').padEnd(12)}generation ${line}`),
  ];
};

type OwnerChange = NonNullable<ClusterState['key']>['changes'][number];

const changeText = ({ owner, cause }: OwnerChange, before: OwnerChange | undefined): string => {
  const next = printable(owner);
  const previous = before === undefined ? 'the previous owner' : printable(before.owner);
  return {
    first: `${next} is the first owner`,
    'hand-over': `${previous} handed over to ${next}`,
    released: `${next} claimed it after ${previous} had released it`,
    silence: `${next} claimed it because ${previous} did not answer`,
    resumed: `${next} claimed it after cluster resume`,
  }[cause];
};
