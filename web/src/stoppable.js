// @ts-check
// Generators of clips. A plain generator that is left before its first value runs none of its code,
// and one that is left while it waits for a value goes on waiting: a camera would stay on.

/**
 * Returns the generator that `begin` makes, which frees its input however it ends.
 * @template T
 * @param {(stop: AbortSignal) => AsyncGenerator<T, void, undefined>} begin the signal ends a wait
 * for a value, when the caller leaves meanwhile
 * @param {() => unknown} free frees the input, unless it is free already
 * @returns {AsyncGenerator<T, void, undefined>}
 */
export function stoppable(begin, free) {
  const stopping = new AbortController();
  const values = begin(stopping.signal);
  const [next, leave] = [values.next.bind(values), values.return.bind(values)];
  let waiting = 0;
  values.next = async () => {
    waiting += 1;
    try {
      const found = await next();
      if (found.done) await free();
      return found;
    } catch (error) {
      free();
      if (stopping.signal.aborted) return { done: true, value: undefined };
      throw error;
    } finally {
      waiting -= 1;
    }
  };
  values.return = async (value) => {
    if (waiting > 0) stopping.abort();
    const left = await leave(value);
    await free();
    return left;
  };
  values.throw = async (error) => {
    await values.return();
    throw error;
  };
  return values;
}
