"""The smallest click program that takes a word and prints it: what `memory read` is measured
against.
"""

import click


@click.command()
@click.argument("word")
def echo(word: str) -> None:
    """Print WORD."""
    click.echo(word)


if __name__ == "__main__":
    echo()
