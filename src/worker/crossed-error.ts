import { type FailureFields, TradeFeedError } from '../protocol/failures/trade-feed-error.js';

/** An error on its way between threads. A structured clone would lose the fields of a failure, and the code of a system error. */
export type CrossedError =
  | {
      readonly kind: 'failure';
      readonly fields: Omit<FailureFields, 'cause' | 'previous'>;
      readonly message: string;
      readonly stack: string | undefined;
      readonly cause: CrossedError | undefined;
      readonly previous: CrossedError | undefined;
    }
  | {
      readonly kind: 'error';
      readonly name: string;
      readonly message: string;
      readonly stack: string;
      readonly code: unknown;
    }
  | { readonly kind: 'kept'; readonly id: number; readonly message: string | undefined };

/** What stays behind where it was thrown, because only there it is the very same. */
export interface Keeping {
  /** Gives the number of what stays behind; `undefined` for what can go. */
  readonly idOf: (thrown: unknown) => number | undefined;
  /** Gives what stays behind. */
  readonly byId: (id: number, message: string | undefined) => unknown;
}

/** Makes whatever was thrown ready to cross. */
export const crossing = (thrown: unknown, keeping: Keeping): CrossedError => {
  if (thrown instanceof TradeFeedError) {
    const { message, stack, cause, previous, summary, detail, option, name: _, ...shown } = thrown;
    const fields = { ...shown, summary, detail, option };
    const next = (error: unknown) => (error === undefined ? undefined : crossing(error, keeping));
    const [theCause, thePrevious] = [next(cause), next(previous)];
    return { kind: 'failure', fields, message, stack, cause: theCause, previous: thePrevious };
  }
  const { name, message, stack, code } = Object(thrown) as Partial<Record<keyof NodeJS.ErrnoException, unknown>>;
  const id = keeping.idOf(thrown);
  if (id !== undefined) return { kind: 'kept', id, message: thrown instanceof Error ? thrown.message : undefined };
  return {
    kind: 'error',
    name: typeof name === 'string' ? name : 'Error',
    message: String(message ?? thrown),
    stack: String(stack),
    code: typeof code === 'string' ? code : undefined,
  };
};

/** Makes it an error again. */
export const crossed = (error: CrossedError, keeping: Keeping): unknown => {
  switch (error.kind) {
    case 'kept':
      return keeping.byId(error.id, error.message);
    case 'error': {
      const { name, message, stack, code } = error;
      const own = { stack, ...(name !== 'Error' && { name }), ...(code !== undefined && { code }) };
      return Object.assign(new Error(message), own);
    }
    case 'failure': {
      const { fields, message, stack } = error;
      const cause = error.cause && crossed(error.cause, keeping);
      const previous = error.previous && (crossed(error.previous, keeping) as TradeFeedError);
      return Object.assign(new TradeFeedError({ ...fields, cause, previous }), { message, stack });
    }
  }
};
