/** Reasons for the survivors of src/operators, by file. */
export const operators = {
  'merge-map-bounded.ts': [
    { mutator: 'OptionalChaining', why: 'There is a subscriber whenever a value arrives. The check is for the type.' },
  ],
  'decode/io-ts-check.ts': [
    { mutator: 'OptionalChaining', why: 'A context has a root, and a record its parts. The check is for the type.' },
    {
      from: 'codec.type !== undefined',
      to: 'true',
      why: 'A codec with such a tag has a type. The check is for the type.',
    },
    { to: "codec.decode.name.endsWith('bound ')", why: 'The decoder of io-ts has no name of its own.' },
  ],
  'distinct-recent.ts': [
    { code: 'inOrder.size > 0', why: 'Without an oldest entry its time counts as now, which has not expired.' },
    { code: 'if (at > now) now = at', why: 'Assigning the same time changes nothing.' },
  ],
  'connection-status.ts': [
    {
      from: "status.state === 'reconnecting'",
      to: 'true',
      why: 'Only this state has a next attempt. The check is for the type.',
    },
  ],
  'bounded/ring.ts': [{ code: 'firstSlots', why: 'The ring grows, so its first size has no visible effect.' }],
  'node/to-readable.ts': [
    {
      code: 'let wants = false',
      why: 'Before the first read, one value is in the stream instead of the queue. This has no visible effect.',
    },
  ],
  'items/event-time.ts': [
    {
      code: 'if (time > this.newest) this.newest = time',
      mutator: 'EqualityOperator',
      why: 'Assigning the same value changes nothing.',
    },
  ],
  'bounded/bounded-reader.ts': [
    {
      code: "this.#state = 'ended'",
      mutator: 'StringLiteral',
      why: 'The last state of a reader is never compared with itself.',
    },
    {
      code: 'if (this.#queue.size > 0) this.pull()',
      why: 'With an empty queue `pull()` does nothing. The check saves the call.',
    },
  ],
  'items/item.ts': [
    {
      code: 'isEither(value) && value._tag',
      why: 'An Either that is not a Left is a Right, which does not have that field.',
    },
  ],
  'count-window.ts': [
    {
      code: 'if (time > this.now) this.now = time',
      mutator: 'EqualityOperator',
      why: 'Assigning the same value changes nothing.',
    },
  ],
  'window/time-windows.ts': [
    {
      code: 'if (time >= this.from && time < this.until)',
      why: 'A shortcut for an item in the same windows as the one before. The general code does the same.',
    },
    {
      code: 'this.until = Math.min(',
      why: 'A shortcut for an item in the same windows as the one before. The general code does the same.',
    },
    {
      code: 'private until = -Infinity',
      why: 'Replaced before it is used: no window begins at infinity.',
    },
  ],
  'window/outages.ts': [
    {
      code: 'if (this.#known.length === 0 && outage === undefined',
      why: 'A shortcut for an empty list. The general code returns an empty list as well.',
    },
    { code: 'if (this.#known.length > 0)', why: 'An empty list stays empty. The check saves a new list.' },
  ],
};
