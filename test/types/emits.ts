// The files of this folder are compile-only: `tsc --noEmit` is the test. `@ts-expect-error` marks code that must not compile; an unused
// mark is an error.
import type { Observable } from 'rxjs';

type Emitted<O> = O extends Observable<infer T> ? T : never;

/** True if both types are assignable to each other and the inferred one is not `any`. */
export type Same<A, B> = [A, B, 0 extends 1 & A ? 1 : 2] extends [B, A, 2] ? true : false;

/** Compiles if an Observable emits exactly a type: `emits<Frame>()(frames$)`. */
export declare const emits: <T>() => <O>(source: O, ...wrong: Same<Emitted<O>, T> extends true ? [] : [never]) => void;
