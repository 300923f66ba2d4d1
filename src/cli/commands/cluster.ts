import { type ClusterState, readClusterState, requestHandOver, resumeCluster } from '../../cluster/operate.js';
import { printable } from '../../protocol/printable.js';
import type { ClusterCommand } from '../arguments/parsed-command.js';
import { CliError, usageError } from '../cli-error.js';
import { connectEngine, engineAddress } from '../cluster/engine.js';
import { defaultAccount } from '../cluster/feed.js';
import type { CliContext } from '../context.js';
import { ExitCode } from '../exit-code.js';
import { counted, duration } from '../view/units.js';

/**
 * Shows the state of a cluster, moves the ownership to another replica, or allows the replicas to connect again.
 *
 * @returns the exit code
 * @throws CliError if the engine cannot be reached, or if there is nothing to do
 */
export const cluster = async ({ action, options }: ClusterCommand, context: CliContext): Promise<number> => {
  const address = engineAddress(options, context);
  if (address === undefined)
    throw usageError('The address of the engine is missing. Set TRADE_FEED_CLUSTER or use --cluster URL.');
  const account = options.account ?? defaultAccount;
  const { engine, close } = await connectEngine(address);
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
  const { owner, phase, gen, since, feed, stop, evictions } = key;
  const state = {
    open: `${printable(owner)}, for ${age(since)}`,
    opening: `${printable(owner)}, which opens a connection, for ${age(since)}`,
    free: 'none: the last one gave the ownership away',
    stopped: `none: another client replaced the connection${stop ? `, ${age(stop.at)} ago` : ''}; cluster resume allows the replicas to connect again`,
  }[phase];
  return [
    `owner       ${state}`,
    `feed        ${feed}`,
    `generation  ${gen}`,
    `standbys    ${standbys.length === 0 ? 'none' : standbys.map(({ replica }) => printable(replica)).join(', ')}`,
    `evictions   ${evictions.length === 0 ? 'none' : counted(evictions.length, 'connection')} in the last minute`,
  ];
};
