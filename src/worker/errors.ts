import { type FailureFields, TradeFeedError } from '../protocol/failures/trade-feed-error.js';
import { isError, tryCall } from '../protocol/type-guards.js';

/** An error as plain data. A structured clone would lose a failure's fields and a system error's code. */
export type CloneableError =
  | {
      readonly kind: 'failure';
      readonly fields: object;
      readonly cause: CloneableError | undefined;
      readonly previous: CloneableError | undefined;
    }
  | { readonly kind: 'error'; readonly fields: object }
  | ThrownByUser;

/** A value that `apiKey` threw. It stays on the main thread, so the subscriber gets the same object. */
export interface ThrownByUser {
  readonly kind: 'thrown';
  readonly id: number;
  /** The message, if it's an error. */
  readonly message: string | undefined;
}

export type Thrown = Map<number, unknown>;

/** Only a failure and the one before it can have such a value as their cause, so older ones can go. */
const maxKept = 64;

export const keepThrown = (thrown: Thrown, id: number, value: unknown): ThrownByUser => {
  thrown.set(id, value);
  thrown.delete(id - maxKept);
  // A user's error may have anything as its `message`.
  const message = isError(value) ? (tryCall(() => String(value.message as unknown)) ?? '') : undefined;
  return { kind: 'thrown', id, message };
};

const idOf = Symbol('id');

/** Returns what to throw in the worker instead: for an error, one with the same message; otherwise an object. */
export const standIn = ({ id, message }: ThrownByUser): unknown =>
  Object.assign(message === undefined ? {} : new Error(message), { [idOf]: id });

export const toCloneable = (thrown: unknown): CloneableError => {
  if (thrown instanceof TradeFeedError) {
    const { summary, detail, option, stack, cause, previous } = thrown;
    const convert = (error: unknown) => (error === undefined ? undefined : toCloneable(error));
    const fields = { ...thrown.toJSON(), summary, detail, option, stack, previous: undefined };
    return { kind: 'failure', fields, cause: convert(cause), previous: convert(previous) };
  }
  const { name, message, stack, code, [idOf]: id } = Object(thrown) as { readonly [name in string | symbol]?: unknown };
  if (typeof id === 'number') return { kind: 'thrown', id, message: message as string | undefined };
  const fields = {
    message: String(message ?? thrown),
    stack: String(stack),
    ...(typeof name === 'string' && name !== 'Error' && { name }),
    ...(typeof code === 'string' && { code }),
  };
  return { kind: 'error', fields };
};

export const fromCloneable = (error: CloneableError, kept: Thrown): unknown => {
  if (error.kind === 'thrown') return kept.has(error.id) ? kept.get(error.id) : new Error(error.message);
  if (error.kind === 'error') return Object.assign(new Error(''), error.fields);
  const [cause, previous] = [error.cause, error.previous].map((each) => each && fromCloneable(each, kept));
  return new TradeFeedError({ ...error.fields, cause, previous } as FailureFields);
};
