"""What is measured inside a cell: models, scenarios, oracles, controls and diagnosis.

Runs wherever torch, transformers and pytest are: ``pytest checks`` or ``python -m checks``.

To add a scenario: put one :class:`~checks.catalog.Scenario` line into ``catalog.SCENARIOS``
and write one function in a module of ``checks/scenarios/``, decorated with
``@scenario("its-name")``. The function gets a :class:`~checks.bench.Bench`, reaches the
crossing the way a user would, and returns the :class:`~checks.observation.Run` it saw;
oracles, controls, fingerprints and the record are the same for all scenarios.

To add a model: one line in ``catalog.MODELS`` and one :class:`~checks.models.ModelSpec` in
``models.SPECS``; if its decoder isn't one that ``checks/reference.py`` knows, leave
``architecture=None`` and the uncached oracle alone decides.

To add a workaround: one line in ``catalog.WORKAROUNDS``, a kind of bench in
``checks/workarounds.py`` that drives the model that way, and its name at the scenarios that it
makes sense for. It is tried where a release is affected, and judged by the same oracles.

For a person, ``python -m checks --verdict`` says the same without pytest.

Whatever differs between releases of transformers is adapted in ``checks/adapt/``, by
looking at what is there. Importing this package costs nothing.
"""
