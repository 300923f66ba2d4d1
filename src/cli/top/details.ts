import type { Span } from '../view/line.js';
import { count, counted, duration } from '../view/units.js';
import type { Clients, Figures, Replica, Snapshot } from './snapshot.js';

/** A line below a row of `top`. */
export type Detail = readonly [text: string, style: NonNullable<Span[1]>];

/** Returns what a row does not show: the problem, the causes of reconnects, the clients and the replica. */
export const detailsOf = ({ state, problem, stats = {}, clients, cluster }: Snapshot): readonly Detail[] => {
  const losses = lossWords(stats);
  return [
    ...(problem === undefined ? [] : [[problem, state === 'stopped' ? 'red' : 'yellow'] as const]),
    ...(losses === '' ? [] : [[losses, 'dim'] as const]),
    ...(clients === undefined ? [] : [[clientWords(clients), 'dim'] as const]),
    ...(cluster === undefined ? [] : [[replicaWords(cluster), 'dim'] as const]),
  ];
};

const lossWords = ({ lostMs = 0, dropped = 0, reconnects = {} }: Partial<Figures>): string => {
  const causes = Object.entries(reconnects).sort(([, one], [, other]) => other - one);
  return [
    causes.length > 0 && `reconnects after ${causes.map(([code, times]) => `${code} (${count(times)})`).join(', ')}`,
    lostMs > 0 && `${duration(lostMs)} without frames`,
    dropped > 0 && `${counted(dropped, 'frame')} dropped`,
  ]
    .filter(Boolean)
    .join('; ');
};

const clientWords = ({ count: clients, authorizing, sent, missed }: Clients): string =>
  [
    counted(clients, 'client'),
    authorizing > 0 && `${count(authorizing)} waiting for authorize`,
    `${counted(sent, 'frame')} sent`,
    `${count(missed)} missed`,
  ]
    .filter(Boolean)
    .join(', ');

const replicaWords = ({ role, replica, owner }: Replica): string =>
  `replica ${replica}: ${role}${owner === undefined || owner === replica ? '' : `, the owner is ${owner}`}`;
