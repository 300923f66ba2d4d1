import type { Monitor } from '../feed/monitor';
import { bytesParts, count, rate } from '../feed/words';
import type { Figure } from './figure';

const none = ['–', ''] as const;
const isDown = ({ state }: Monitor): boolean => state() !== 'live';

/** Creates the figures of the page. */
export const figuresOf = (monitor: Monitor): readonly Figure[] => [
  {
    id: 'frames',
    least: 10,
    title: 'Frames per second',
    lines: [{ label: 'frames per second', tone: 'strong' }],
    now: () => [isDown(monitor) ? undefined : monitor.rates()?.framesPerSecond],
    columns: ({ framesPerSecond }) => [framesPerSecond],
    parts: (value) => (value === undefined ? none : [rate(value), '']),
    tick: (value) => (value >= 10_000 ? `${count(value / 1_000)}k` : count(value)),
  },
  {
    id: 'bytes',
    least: 1_000,
    title: 'Bytes per second',
    lines: [{ label: 'bytes per second', tone: 'strong' }],
    now: () => [isDown(monitor) ? undefined : monitor.rates()?.bytesPerSecond],
    columns: ({ bytesPerSecond }) => [bytesPerSecond],
    parts: (value) => {
      if (value === undefined) return none;
      const [figure, unit] = bytesParts(value);
      return [figure, `${unit}/s`];
    },
    tick: (value) => bytesParts(value).join('\u00a0').replace('.0', ''),
  },
  {
    id: 'latency',
    least: 10,
    title: 'Latency',
    help:
      'The time from reading a frame in the relay to its arrival on this page, in the last second. Half of the frames took less than p50, and ' +
      '95 of 100 took less than p95. On two machines it includes the difference of their clocks. It does not include the time from the service ' +
      'to the relay. Before this page was loaded, the chart shows the time that frames spent in the server.',
    lines: [
      { label: 'p95', tone: 'strong' },
      { label: 'p50', tone: 'soft' },
      { label: 'in the server', tone: 'dashed' },
    ],
    now: () => (isDown(monitor) ? [] : [monitor.latency()?.p95, monitor.latency()?.p50]),
    columns: ({ p95, p50, inServer }) => [p95, p50, inServer],
    beginsWithPage: true,
    parts: (value) => (value === undefined ? none : value < 1_000 ? [count(value), 'ms'] : [rate(value / 1_000), 's']),
    tick: (value) => (value < 1_000 ? `${count(value)} ms` : `${rate(value / 1_000)} s`),
  },
];
