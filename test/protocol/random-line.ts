import { expect } from '@jest/globals';
import { isDeepStrictEqual } from 'node:util';
import {
  afterRecord,
  type Between,
  between,
  type Countable,
  type Head,
  isAfter,
  missedBetween,
  type Place,
  startOf,
} from '../../src/protocol/place.js';
import { createChance } from '../simulation/chance.js';

// A line whose owners, messages and readers do what chance says. The model knows what each owner sent, record by
// record, and reads no number of a place.

type Record = Countable & { readonly id: number };

interface Message {
  readonly head: Head;
  readonly records: readonly Record[];
}

/** An owner of the connection. It holds its messages until they're stored. */
interface Owner extends Pick<Head, 'gen' | 'after' | 'began'> {
  /** The line before it began, and all that it sent. */
  readonly view: Record[];
  readonly waiting: Message[];
  /** Whether it begins with a gap, because its connection wasn't open before the last one ended. */
  readonly isLate: boolean;
}

const counted = (records: readonly Record[]): Pick<Place, 'frames' | 'holes'> => ({
  frames: records.reduce((sum, { type, missed = type === 'frame' ? 1 : 0 }) => sum + missed, 0),
  holes: records.filter(({ type, missed }) => type === 'gap' && missed === undefined).length,
});

/** Fails as `toEqual` does, but costs a thirtieth of it. */
const same = (is: object, must: object): void => {
  if (!isDeepStrictEqual(is, must)) expect(is).toEqual(must);
};

/** Runs a line. Adds to `reached` what happened. */
export const runLine = (seed: number, reached: Set<string>): void => {
  const { whole, oneOf, isTrue, oneByShare } = createChance(seed);
  const owners: Owner[] = [{ gen: 1, after: 0, began: 0, view: [], waiting: [], isLate: false }];
  const senders = [...owners];
  /** What a fenced store took, in order. */
  const store: Message[] = [];
  let sent = 0;
  let isAway = false;
  const newest = (): Owner => owners.at(-1)!;
  const viewOf = ({ gen, offset }: Pick<Place, 'gen' | 'offset'>): readonly Record[] =>
    owners.find((owner) => owner.gen === gen)!.view.slice(0, offset);

  /** `keeps`: how many messages are left in its store. */
  const createReader = (keeps: number) => {
    let place: Place | undefined;
    let start = 0;
    const emitted = new Set<Record>();
    const inGaps = new Set<Record>();

    /** Compares the answer with what both owners sent. Returns it with the number of frames that a hole lost. */
    const decide = (head: Head): { readonly is: Between; readonly missed?: number | undefined } => {
      const is = between(place, head);
      reached.add(is.type);
      if (place === undefined || head.gen < place.gen) {
        same(is, { type: place === undefined ? 'first' : 'old' });
        return { is };
      }
      const [mine, line] = [viewOf(place), viewOf({ ...head, offset: Infinity })];
      const differs = mine.findIndex((record, n) => record !== line[n]);
      const known = differs === -1 ? mine.length : differs;
      const surplus = mine.length - known;
      const isDirect = head.gen === place.gen || head.after <= place.gen;
      if (!isDirect) reached.add('two owners');
      if (surplus > 0) reached.add('surplus');
      const isNew = known < head.offset + head.count || known === head.offset;
      if (!isDirect)
        same(is, surplus > 0 && is.type === 'other' ? is : { type: 'hole', from: place.offset, surplus: 0 });
      else if (head.offset > known) same(is, { type: 'hole', from: known, surplus });
      else same(is, isNew ? { type: 'next', skip: known - head.offset, surplus } : { type: 'old' });
      if (is.type !== 'hole') return { is };
      const missed = missedBetween(place, head);
      const lost = counted(line.slice(known, head.offset));
      const number = surplus > 0 || lost.holes > 0 ? undefined : lost.frames;
      // After two owners it may be unknown.
      if (isDirect || missed !== undefined) expect(missed).toBe(number);
      return { is, missed };
    };

    /** Emits what is new. What is missing before it is lost. */
    const take = ({ head, records }: Message): void => {
      const { is, missed } = decide(head);
      if (is.type === 'old') return;
      if (is.type === 'first') start = head.offset;
      if (is.type === 'hole' || is.type === 'other') {
        reached.add(missed === undefined ? 'gap' : 'gap with a number');
        // Without a number, any record before the message may be lost.
        const from = is.type === 'hole' && missed !== undefined ? is.from : 0;
        for (const record of viewOf(head).slice(from)) inGaps.add(record);
      }
      for (const record of records.slice(is.type === 'next' ? is.skip : 0)) {
        if (emitted.has(record)) throw new Error(`Record ${record.id} came twice.`);
        emitted.add(record);
      }
      const before = place;
      place = records.reduce<Place>((then, record) => afterRecord(then, record, 0), head);
      const { frames, holes } = place;
      same({ frames, holes }, counted(viewOf(place)));
      if (before !== undefined && isAfter(before, place) === true) throw new Error('The place moved back.');
    };

    const receive = (message: Message): void => {
      const { is } = decide(message.head);
      const kept = store.slice(Math.max(0, store.length - keeps));
      if (is.type === 'hole') for (const each of kept) if (each.head.offset + each.head.count > is.from) take(each);
      take(message);
    };

    const queues = new Map<number, Message[]>();
    const deliver = (): boolean => {
      const waiting = [...queues.values()].filter(({ length }) => length > 0);
      if (waiting.length > 0) receive(oneOf(waiting).shift()!);
      return waiting.length > 0;
    };
    const verify = (): void => {
      const line = newest().view;
      expect(place?.offset).toBe(line.length);
      const ids = [...emitted].filter((record) => line.includes(record)).map(({ id }) => id);
      expect(ids).toEqual(line.filter((record) => emitted.has(record)).map(({ id }) => id));
      expect(line.slice(start).filter((record) => !emitted.has(record) && !inGaps.has(record))).toEqual([]);
    };
    return { queues, receive, deliver, verify };
  };
  const readers = [createReader(Infinity), createReader(4), createReader(0)];

  const createMessage = (owner: Owner, count: number): Message => {
    const { gen, after, began, view, isLate } = owner;
    const head = { ...startOf('a', view.length), gen, after, began, count, ...counted(view) };
    const records = Array.from({ length: count }, (_, n): Record => {
      const isFirst = isLate && n === 0 && view.length === began;
      const type = isFirst
        ? 'gap'
        : oneByShare([
            [6, 'frame'],
            [2, 'opened'],
            [2, 'gap'],
          ]);
      return { id: (sent += 1), type, ...(type === 'gap' && !isFirst && isTrue(0.5) && { missed: whole(0, 9) }) };
    });
    view.push(...records);
    return { head, records };
  };
  const post = (message: Message): void => {
    for (const { queues } of readers)
      for (
        let copies = oneByShare([
          [2, 0],
          [9, 1],
          [1, 2],
        ]);
        copies > 0;
        copies -= 1
      )
        queues.set(message.head.gen, [...(queues.get(message.head.gen) ?? []), message]);
  };
  const storeAll = (): void => {
    if (!isAway) store.push(...newest().waiting.splice(0));
  };
  const takeOver = (): void => {
    const [last, before] = [store.at(-1)?.head, newest()];
    const [after, began] = [last?.gen ?? 0, last === undefined ? 0 : last.offset + last.count];
    const hasEnded = after === before.gen && began === before.view.length && isTrue(0.5);
    if (hasEnded) senders.splice(senders.indexOf(before), 1);
    const isLate = !hasEnded || (before.isLate && began === before.began);
    const view = after === 0 ? [] : [...viewOf({ gen: after, offset: began })];
    owners.push({ gen: before.gen + whole(1, 3), after, began, view, waiting: [], isLate });
    senders.push(newest());
  };
  const steps: readonly (readonly [share: number, step: () => void])[] = [
    [
      12,
      () => {
        const owner = isTrue(0.8) ? newest() : oneOf(senders);
        const message = createMessage(owner, whole(0, 4));
        owner.waiting.push(message);
        post(message);
        storeAll();
      },
    ],
    [30, () => oneOf(readers).deliver()],
    [1, takeOver],
    [1, () => (isAway = !isAway)],
    [1, () => newest().waiting.forEach(post)],
    [1, () => newest().waiting.shift()],
  ];
  for (let step = 0; step < 200; step += 1) oneByShare(steps)();
  isAway = false;
  storeAll();
  for (const { deliver } of readers) while (deliver());
  const beat = createMessage(newest(), 0);
  for (const { receive, verify } of readers) {
    receive(beat);
    verify();
  }
};
