import type { ClusterEngine } from '../../cluster/index.js';
import {
  type ClusterState,
  type LineState,
  readClusterState,
  requestHandOver,
  resumeCluster,
} from '../../cluster/operate.js';
import { printable } from '../../protocol/printable.js';
import { connectEngine, defaultAccount, engineAddress } from '../connection.js';
import type { CliContext } from '../terminal.js';
import { CliError, ExitCode, usageError } from '../errors.js';
import { cluster, defineCommand, option, type ValuesOf, wordArgument } from '../options.js';
import { writeResult } from '../delivery.js';
import { bytes, count, counted, duration, type Fact, factLines } from '../text.js';

const options = { ...cluster, json: option('--json', 'write the status as one JSON object') };

export type Action = 'status' | 'hand-over' | 'resume';

export const command = defineCommand({
  argument: wordArgument('<action>', 'status, hand-over or resume', 'status', 'hand-over', 'resume'),
  summary: 'show or change which replica owns a connection',
  description: `
    status shows which replica owns the connection, its generation, the replicas that could take over, what the engine's
    store holds of the line, and the last changes of the owner. hand-over moves the ownership to another replica. After another client has replaced the
    connection, resume lets the replicas connect again; restart those that have stopped. resume also repairs a key that
    can't be read.

    Set TRADE_FEED_CLUSTER to an address with a password: other users can read arguments in the list of processes.
  `,
  options,
  examples: [
    ['rx-trade-feed cluster status --cluster nats://127.0.0.1:4222', 'which replica owns the connection'],
    ['rx-trade-feed cluster hand-over --cluster redis://127.0.0.1:6379', 'move the ownership before a maintenance'],
  ],
  run: (action, values, context) => act(action, values, context),
});

export const act = async (
  action: Action,
  values: ValuesOf<typeof options>,
  context: CliContext,
  connect: typeof connectEngine = connectEngine,
): Promise<number> => {
  const address = engineAddress(values, context);
  if (address === undefined)
    throw usageError('Missing address of the engine. Set TRADE_FEED_CLUSTER or use --cluster URL.');
  const account = values.account ?? defaultAccount;
  const { engine, close } = await connect(address);
  try {
    const state = await readClusterState(engine, account);
    const lines = await actions[action](state, engine, account);
    await writeResult(context, action === 'status' && values.json, state, lines);
    return ExitCode.ok;
  } finally {
    await close();
  }
};

type Act = (state: ClusterState, engine: ClusterEngine, account: string) => Promise<readonly string[]>;

const actions: Readonly<Record<Action, Act>> = {
  status: (state) => Promise.resolve(statusText(state, Date.now())),
  'hand-over': async ({ standbys }, engine, account) => {
    if (standbys.length === 0) throw nothingToDo('No other replica could take the connection. Start one first.');
    if (!(await requestHandOver(engine, account)))
      throw nothingToDo('No replica owns the connection. Wait until one takes it, or see cluster status.');
    return ['The owner gives the ownership away.'];
  },
  resume: async (_state, engine, account) => {
    if (!(await resumeCluster(engine, account)))
      throw nothingToDo("The cluster hasn't stopped, so there is nothing to resume.");
    return ['The replicas may connect again. Restart those that have stopped.'];
  },
};

const nothingToDo = (what: string): Error => new CliError(ExitCode.wrong, what);

export const statusText = ({ key, isUnreadable, standbys, line }: ClusterState, now: number): readonly string[] => {
  const problems = standbys.flatMap(({ replica, refused }): Fact[] =>
    refused === undefined ? [] : [['problem', printable(`${replica}: ${refused}`)]],
  );
  const others: readonly Fact[] = [...problems, ['line', lineText(line)]];
  if (isUnreadable)
    return factLines([
      ['owner', 'not known: the key of this account is damaged, or of a newer version'],
      ['repair', 'an owner that runs writes it again within a second; otherwise run cluster resume'],
      ...others,
    ]);
  if (key === undefined) return ['no replica has owned the connection of this account yet', ...factLines(others)];
  const age = (at: number): string => duration(Math.max(0, now - at));
  const { owner, phase, gen, since, source, stop, evictions, changes } = key;
  const state = {
    open: `${printable(owner)}, for ${age(since)}`,
    opening: `${printable(owner)}, which opens a connection, for ${age(since)}`,
    free: stop ? 'none: the replicas may connect again' : 'none: the last one gave the ownership away',
    stopped: `none: another client replaced the connection${stop ? `, ${age(stop.at)} ago` : ''}; cluster resume allows the replicas to connect again`,
  }[phase];
  const handOvers = changes.map(
    (change, n) => `generation ${change.gen}, ${age(change.since)} ago: ${changeText(change, changes[n - 1])}`,
  );
  return factLines([
    ['owner', state],
    ['feed', printable(source)],
    ['generation', String(gen)],
    ['standbys', standbys.map(({ replica }) => printable(replica)).join(', ') || 'none'],
    ...others,
    ['evictions', `${evictions.length === 0 ? 'none' : counted(evictions.length, 'connection')} in the last minute`],
    ['hand-overs', ...handOvers.reverse()],
  ]);
};

const lineText = (line: LineState): string => {
  if (line === 'none') return 'none: this engine has no store, so replicas lose what they miss';
  if (line === 'empty') return line;
  if ('refused' in line) return `not known: ${printable(line.refused)}`;
  const { from, to, durationMs } = line;
  return `${count(from)} to ${count(to)}: ${duration(durationMs)}, ${bytes(line.bytes)}`;
};

type OwnerChange = NonNullable<ClusterState['key']>['changes'][number];

const changeText = ({ owner, cause }: OwnerChange, before: OwnerChange | undefined): string => {
  const next = printable(owner);
  const previous = before === undefined ? 'the previous owner' : printable(before.owner);
  return {
    first: `${next} is the first owner`,
    'hand-over': `${previous} handed over to ${next}`,
    released: `${next} claimed it after ${previous} had released it`,
    silence: `${next} claimed it because ${previous} didn't answer`,
    resumed: `${next} claimed it after cluster resume`,
  }[cause];
};
