import { type FailureFields, TradeFeedError } from '../protocol/failures/trade-feed-error.js';
import type { ThrownValues } from './thrown-values.js';

/** An error as plain data. A structured clone would lose the fields of a failure, and the code of a system error. */
export type CloneableError =
  | {
      readonly kind: 'failure';
      readonly fields: Omit<FailureFields, 'cause' | 'previous'>;
      readonly message: string;
      readonly stack: string | undefined;
      readonly cause: CloneableError | undefined;
      readonly previous: CloneableError | undefined;
    }
  | {
      readonly kind: 'error';
      readonly name: string;
      readonly message: string;
      readonly stack: string;
      readonly code: unknown;
    }
  | { readonly kind: 'stored'; readonly id: number; readonly message: string | undefined };

/** Converts any thrown value to plain data that can be sent to another thread. */
export const toCloneable = (thrown: unknown, values: ThrownValues): CloneableError => {
  if (thrown instanceof TradeFeedError) {
    const { message, stack, cause, previous, summary, detail, option, name: _, ...shown } = thrown;
    const convert = (error: unknown) => (error === undefined ? undefined : toCloneable(error, values));
    return {
      kind: 'failure',
      fields: { ...shown, summary, detail, option },
      message,
      stack,
      cause: convert(cause),
      previous: convert(previous),
    };
  }
  const { name, message, stack, code } = Object(thrown) as Partial<Record<keyof NodeJS.ErrnoException, unknown>>;
  const id = values.idOf(thrown);
  if (id !== undefined) return { kind: 'stored', id, message: thrown instanceof Error ? thrown.message : undefined };
  return {
    kind: 'error',
    name: typeof name === 'string' ? name : 'Error',
    message: String(message ?? thrown),
    stack: String(stack),
    code: typeof code === 'string' ? code : undefined,
  };
};

/** Converts the plain data back to the error. */
export const fromCloneable = (error: CloneableError, values: ThrownValues): unknown => {
  switch (error.kind) {
    case 'stored':
      return values.byId(error.id, error.message);
    case 'error': {
      const { name, message, stack, code } = error;
      const fields = { stack, ...(name !== 'Error' && { name }), ...(code !== undefined && { code }) };
      return Object.assign(new Error(message), fields);
    }
    case 'failure': {
      const { fields, message, stack } = error;
      const cause = error.cause && fromCloneable(error.cause, values);
      const previous = error.previous && (fromCloneable(error.previous, values) as TradeFeedError);
      return Object.assign(new TradeFeedError({ ...fields, cause, previous }), { message, stack });
    }
  }
};
