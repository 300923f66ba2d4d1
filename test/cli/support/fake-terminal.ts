import { PassThrough } from 'node:stream';

/** The stdin of a terminal. */
export interface FakeTerminal extends PassThrough {
  readonly isTTY: true;
  readonly setRawMode: (isRaw: boolean) => void;
  /** Each change of the raw mode. */
  readonly modes: readonly boolean[];
}

/** Creates a terminal on which a test types. */
export const fakeTerminal = (): FakeTerminal => {
  const modes: boolean[] = [];
  const setRawMode = (isRaw: boolean): void => void modes.push(isRaw);
  return Object.assign(new PassThrough({ autoDestroy: false }), { isTTY: true as const, setRawMode, modes });
};
