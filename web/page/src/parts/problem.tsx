import type { ApiError } from '../api';

/** An error where it happened: what the server said, and what can be done. */
export function Problem({ error }: { error: ApiError }) {
  return (
    <div class="problem" role="alert">
      <p class="problem-what">{error.message}</p>
      <p>{advice(error.type)}</p>
    </div>
  );
}

function advice(type: string): string {
  switch (type) {
    case 'bad_data':
      return 'Check the selector: name{label="value", other=~"a|b"}. Click the name above to edit it.';
    case 'execution':
    case 'cost_limit':
      return 'Ask for less: narrow the selector with one more label.';
    case 'timeout':
    case 'unavailable':
    case 'network':
      return 'Asking again every few seconds; this page goes on by itself.';
    case 'not_found':
      return 'This server does not know the question: it may be older than this page.';
    default:
      return 'Asking again every few seconds. The log of the server says more.';
  }
}
